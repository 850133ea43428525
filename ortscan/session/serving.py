"""The process in which the model of a session is optimised, as ``apart`` asks for it."""

import logging
import os
import pickle
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from ortscan.base import child_process
from ortscan.cache.own_files import write_own
from ortscan.cache.store import MODEL
from ortscan.errors import OrtscanWarning
from ortscan.session.fresh import fresh
from ortscan.session.prepared import Prepared
from ortscan.session.source import Source
from rewrites.base.errors import OrtscanError

__all__ = ["HELLO", "serve"]

HELLO = b"ortscan\n"
"""What the process says when it has begun: whatever else was started does not."""


def serve() -> None:
    """Be the child: do the one thing that is asked for, and say how it went."""
    child_process.end_with_parent()
    replies = child_process.own_stdout()
    replies.write(HELLO)
    replies.flush()
    request = pickle.load(sys.stdin.buffer)
    given = None if request["bytes"] is None else sys.stdin.buffer.read(request["bytes"])
    records = list[tuple[str, int, str]]()
    _log_to(records, request["level"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reply = _done(request, given)
    reply["records"] = records
    reply["warnings"] = [str(one.message) for one in caught if issubclass(one.category, OrtscanWarning)]
    pickle.dump(reply, replies)
    replies.flush()
    os._exit(0)  # nothing is left to do but to give memory back, piece by piece


def _done(request: dict[str, Any], given: bytes | None) -> dict[str, Any]:
    tempfile.tempdir = str(request["spare"])
    path, folder, is_in_memory = request["source"]
    try:
        prepared = fresh(Source(path, given, folder, lambda: is_in_memory), request["options"], request["place"])
    except OrtscanError as error:
        return {"error": (type(error).__name__, str(error), None, None)}
    except OSError as error:
        return {"error": ("OSError", error.strerror or str(error), error.errno, error.filename)}
    except Exception as error:
        return {"error": (type(error).__name__, str(error), None, None)}
    with suppress(OSError):
        return {"prepared": _handed_over(prepared, request["spare"])}
    return {}


def _handed_over(prepared: Prepared, spare: Path) -> dict[str, Any]:
    """Return what the parent makes a Prepared of again; its model is in a file that stays. Raises OSError."""
    applied, path = prepared.applied, prepared.path
    if path is not None:
        os.rename(Path(path).parent, spare / "kept")
        path = str(spare / "kept" / Path(path).name)
    elif prepared.content is not None and applied.entry is not None:
        path = str(applied.entry / MODEL)
    elif prepared.content is not None:
        path = str(spare / MODEL)
        write_own(Path(path), prepared.content)
    said = {name: getattr(applied, name) for name in ("source", "why", "entry", "verified")}
    report = None if applied.report is None else applied.report.to_dict()
    refers = None if prepared.data_of is None else list(prepared.locations)
    return {"applied": said, "report": report, "path": path, "python_ops": prepared.python_ops, "refers": refers}


def _log_to(records: list[tuple[str, int, str]], level: int) -> None:
    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append((record.name, record.levelno, record.getMessage()))

    log = logging.getLogger("ortscan")
    log.setLevel(level)
    log.addHandler(Keeping())
