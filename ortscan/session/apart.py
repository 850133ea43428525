"""Optimises the model of a session in a process of its own, which ends: what that takes is not left with whoever makes the session.

    fresh(source, …)    ->    the same in a child process, from which the optimised model comes as a file

The file stands in the cache, or where it cannot, in a temporary folder. What the child logs, and warns of, is passed on.
"""

import logging
import pickle
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ortscan.base import child_process
from ortscan.base.temporary import TemporaryFolder
from ortscan.base.warned import warn
from ortscan.session.applied import Applied
from ortscan.session.place import Place
from ortscan.session.prepared import Prepared, beside_data
from ortscan.session.serving import HELLO
from ortscan.session.source import Source
from rewrites.base import errors
from rewrites.base.errors import LimitExceeded, OrtscanError

if TYPE_CHECKING:
    from rewrites.base.report import Report

__all__ = ["fresh_apart"]

_CHILD = "from ortscan.session.serving import serve; serve()"
_LONGEST_START, _LONGEST = 60.0, 1800.0
"""Seconds."""

_PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}


def fresh_apart(source: Source, options: Mapping[str, Any], place: Place | None) -> Prepared | None:
    """Do what ``fresh`` does in a child; None where there is none. Raises what that raises, LimitExceeded if the child dies."""
    try:
        spare, process = TemporaryFolder(), child_process.start(_CHILD, start_new_session=True, **_PIPES)
    except OSError:
        return None
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        with _ended_after(_LONGEST_START, process):
            if process.stdout.read(len(HELLO)) != HELLO:
                return None
        with _ended_after(_LONGEST, process):
            reply = _reply_to(_request(source, options, place, spare.path), source.given, process.stdin, process.stdout)
    finally:
        child_process.end(process)
    if reply is None:
        raise LimitExceeded(f"the process that optimises it ended ({child_process.cause(process)}).")
    return _received(reply, source, place, spare)


@contextmanager
def _ended_after(seconds: float, process: "subprocess.Popen[bytes]") -> Iterator[None]:
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _request(source: Source, options: Mapping[str, Any], place: Place | None, spare: Path) -> dict[str, Any]:
    return {
        "source": (source.path, source.folder, source.is_in_memory),
        "bytes": None if source.given is None else len(source.given),
        "options": dict(options),
        "place": place,
        "spare": spare,
        "level": logging.getLogger("ortscan").getEffectiveLevel(),
    }


def _reply_to(request: dict[str, Any], given: bytes | None, requests: IO[bytes], replies: IO[bytes]) -> dict[str, Any] | None:
    try:
        pickle.dump(request, requests)
        if given is not None:
            requests.write(given)
        requests.flush()
        reply: dict[str, Any] = pickle.load(replies)
    except (EOFError, OSError, pickle.UnpicklingError):
        return None
    return reply


def _received(reply: dict[str, Any], source: Source, place: Place | None, spare: TemporaryFolder) -> Prepared | None:
    for name, level, text in reply["records"]:
        if logging.getLogger(name).isEnabledFor(level):
            logging.getLogger(name).log(level, "%s", text)
    for text in reply["warnings"]:
        warn(text)
    if "error" in reply:
        raise _error(*reply["error"])
    if "prepared" not in reply:
        return None
    kept: dict[str, Any] = reply["prepared"]
    report, refers = kept.pop("report"), kept.pop("refers")
    applied = Applied(make_report=lambda: _report(report), **kept.pop("applied"))
    prepared = Prepared(applied, holder=spare, **kept)
    return prepared if refers is None else beside_data(prepared, source, None if place is None else place.store, refers)


def _report(plain: Mapping[str, Any] | None) -> "Report | None":
    from rewrites.base.report import Report

    return None if plain is None else Report.from_dict(plain)


def _error(kind: str, said: str, number: int | None, path: Any) -> Exception:
    if kind == "OSError":
        return OSError(number, said, path)
    if kind == "MemoryError":
        return MemoryError(said)
    known = getattr(errors, kind, None)
    return known(said) if known is not None else OrtscanError(f"{kind}: {said}")
