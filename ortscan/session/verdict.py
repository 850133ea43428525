"""Looks at what onnxruntime opens while it opens it, or where there is one core for both, after it has."""

import _thread
import os
from collections.abc import Callable

__all__ = ["Verdict"]


class Verdict:
    """What ``check`` says, which runs in a thread of its own from now on; with one core, where taking turns costs, when asked."""

    def __init__(self, check: Callable[[], bool]) -> None:
        self._found = False
        self._put_off = check if _cores() == 1 else None
        self._at_work = _thread.allocate_lock()
        if self._put_off is not None:
            return
        self._at_work.acquire()
        _thread.start_new_thread(self._run, (check,))  # unlike a Thread's start this does not wait until it runs

    def _run(self, check: Callable[[], bool]) -> None:
        try:
            self._found = check()
        finally:
            self._at_work.release()

    def is_good(self) -> bool:
        """Wait for it; False also where ``check`` did not come to an end."""
        with self._at_work:
            if self._put_off is not None:
                check, self._put_off = self._put_off, None
                self._found = check()
            return self._found


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
