"""Optimise the model of a session in a subprocess.

When the subprocess ends, the system gets back all memory that the optimisation took. The subprocess calls ``fresh``, and returns
the optimised model as a file. The file is in the cache, or in a temporary folder if it cannot be cached. Log records and warnings
of the subprocess are repeated in this process.
"""

import logging
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from ortscan.base import child_process
from ortscan.base.messages import warn
from ortscan.base.temporary import TemporaryFolder
from ortscan.cache.ownership import write_own
from ortscan.cache.store import MODEL
from ortscan.errors import OrtscanWarning
from ortscan.session.applied import Prepared
from ortscan.session.fresh import CacheSlot, fresh
from ortscan.session.source import SessionSource
from rewrites.base import errors
from rewrites.base.errors import LimitExceeded, OrtscanError

__all__ = ["fresh_in_subprocess", "serve"]

_CHILD = f"from {__name__} import serve; serve()"
_HELLO = b"ortscan\n"
"""The first output of the subprocess. No other program writes this."""

_LONGEST_START, _LONGEST = 60.0, 1800.0
"""The most seconds for starting the subprocess, and for optimising the model in it."""

_PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}


def fresh_in_subprocess(source: SessionSource, options: Mapping[str, Any], slot: CacheSlot | None) -> Prepared | None:
    """Do the same as ``fresh.fresh``, but in a subprocess.

    Return None if no subprocess can be started, or if the subprocess cannot write the optimised model. Raise the errors of
    ``fresh``, and LimitExceeded if the subprocess crashes or takes too long.
    """
    try:
        spare, process = TemporaryFolder(), child_process.start(_CHILD, start_new_session=True, **_PIPES)
    except OSError:
        return None
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        with _killed_after(_LONGEST_START, process):
            if process.stdout.read(len(_HELLO)) != _HELLO:
                return None
        with _killed_after(_LONGEST, process):
            reply = _reply_to(_request(source, options, slot, spare.path), source.serialized, process.stdin, process.stdout)
    finally:
        child_process.end(process)
    if reply is None:
        raise LimitExceeded(f"the process that optimises it ended early ({child_process.cause(process)}).")
    return _received(reply, source, spare)


@contextmanager
def _killed_after(seconds: float, process: "subprocess.Popen[bytes]") -> Iterator[None]:
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _request(source: SessionSource, options: Mapping[str, Any], slot: CacheSlot | None, spare: Path) -> dict[str, Any]:
    return {
        "source": (source.path, source.folder, source.is_in_memory),
        "bytes": None if source.serialized is None else len(source.serialized),
        "options": dict(options),
        "slot": slot,
        "spare": spare,
        "level": logging.getLogger("ortscan").getEffectiveLevel(),
    }


def _reply_to(request: dict[str, Any], content: bytes | None, requests: IO[bytes], replies: IO[bytes]) -> dict[str, Any] | None:
    try:
        pickle.dump(request, requests)
        if content is not None:
            requests.write(content)
        requests.flush()
        reply: dict[str, Any] = pickle.load(replies)
    except (EOFError, OSError, pickle.UnpicklingError):
        return None
    return reply


def _received(reply: dict[str, Any], source: SessionSource, spare: TemporaryFolder) -> Prepared | None:
    for name, level, text in reply["records"]:
        if logging.getLogger(name).isEnabledFor(level):
            logging.getLogger(name).log(level, "%s", text)
    for text in reply["warnings"]:
        warn(text)
    if "error" in reply:
        raise _error(*reply["error"])
    if "prepared" not in reply:
        return None
    prepared: Prepared = reply["prepared"]
    return replace(prepared, data_of=source if prepared.locations else None, holder=spare)


def _error(kind: str, text: str, number: int | None, path: Any) -> Exception:
    if kind == "OSError":
        return OSError(number, text, path)
    if kind == "MemoryError":
        return MemoryError(text)
    known = getattr(errors, kind, None)
    return known(text) if known is not None else OrtscanError(f"{kind}: {text}")


def serve() -> None:
    """Read a request in the subprocess, optimise the model, and send the result to the parent process."""
    child_process.end_with_parent()
    replies = child_process.own_stdout()
    replies.write(_HELLO)
    replies.flush()
    request = pickle.load(sys.stdin.buffer)
    content = None if request["bytes"] is None else sys.stdin.buffer.read(request["bytes"])
    records = list[tuple[str, int, str]]()
    _log_to(records, request["level"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reply = _done(request, content)
    reply["records"] = records
    reply["warnings"] = [str(warning.message) for warning in caught if issubclass(warning.category, OrtscanWarning)]
    pickle.dump(reply, replies)
    replies.flush()
    os._exit(0)  # a normal exit would only spend time on freeing memory


def _done(request: dict[str, Any], content: bytes | None) -> dict[str, Any]:
    tempfile.tempdir = str(request["spare"])
    path, folder, is_in_memory = request["source"]
    try:
        prepared = fresh(SessionSource(path, content, folder, lambda: is_in_memory), request["options"], request["slot"])
    except OrtscanError as error:
        return {"error": (type(error).__name__, str(error), None, None)}
    except OSError as error:
        return {"error": ("OSError", error.strerror or str(error), error.errno, error.filename)}
    except Exception as error:
        return {"error": (type(error).__name__, str(error), None, None)}
    with suppress(OSError):
        return {"prepared": _handed_over(prepared, request["spare"])}
    return {}


def _handed_over(prepared: Prepared, spare: Path) -> Prepared:
    """Return a copy of ``prepared`` with its model in a file, so that it can be sent to the parent.

    The file is in the cache, or in the folder ``spare`` of the parent process. It remains when the subprocess ends. Raise OSError
    if the file cannot be written.
    """
    path = prepared.path
    if path is not None:
        os.rename(Path(path).parent, spare / "kept")
        path = str(spare / "kept" / Path(path).name)
    elif prepared.content is not None and prepared.applied.entry is not None:
        path = str(prepared.applied.entry / MODEL)
    elif prepared.content is not None:
        path = str(spare / MODEL)
        write_own(Path(path), prepared.content)
    return replace(prepared, path=path, content=None, data_of=None, holder=None)


def _log_to(records: list[tuple[str, int, str]], level: int) -> None:
    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append((record.name, record.levelno, record.getMessage()))

    log = logging.getLogger("ortscan")
    log.setLevel(level)
    log.addHandler(Keeping())
