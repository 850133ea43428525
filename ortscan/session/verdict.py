"""Looks at what onnxruntime opens while it opens it."""

import _thread
from collections.abc import Callable

__all__ = ["Verdict"]


class Verdict:
    """What ``check`` says, which runs in a thread of its own from now on."""

    def __init__(self, check: Callable[[], bool]) -> None:
        self._found = False
        self._at_work = _thread.allocate_lock()
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
            return self._found
