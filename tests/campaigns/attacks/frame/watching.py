"""Waits for the process of an attack, and ends it where it takes too long."""

import os
import signal
import time
from contextlib import suppress
from typing import Any

__all__ = ["watched"]

_STEP = 0.005


def watched(child: int, seconds: float) -> dict[str, Any]:
    """Give how the leader ``child`` of a session of its own ended, within ``seconds``, and what it took."""
    started = time.monotonic()
    late = False
    while True:
        found, status, used = os.wait4(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() - started > seconds and not late:
            late = True
            os.killpg(child, signal.SIGKILL)
        time.sleep(_STEP)
    took = time.monotonic() - started
    orphans = _end_group(child)
    code = os.waitstatus_to_exitcode(status)
    return {"code": code, "late": late, "orphans": orphans, "seconds": round(took, 3), "peak": used.ru_maxrss << 10}


def _end_group(leader: int) -> bool:
    """End what the process has left running; say whether there was any."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
        return True
    return False
