"""One lock for each entry: of processes that start together on a new model, one optimises it and the others wait for its entry.

The lock is released when its process ends, however that happens. If files cannot be locked, or the wait takes longer than anybody
should wait, each process does the work itself.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ortscan.cache.ownership import make_folder

__all__ = ["one_at_a_time"]

_LONGEST_WAIT = 60.0
"""Seconds."""

_BYTES_A_SECOND = 4 << 20
"""The least that is optimised and compared in a second."""

_STEP = 0.02
_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@contextlib.contextmanager
def one_at_a_time(folder: Path, key: str, size: int = 0) -> Iterator[bool]:
    """Hold the lock for the entry ``key`` of the cache in ``folder`` while the block runs, if it is to be had.

    Yield True if another process or thread held it before. The longer the model (``size`` bytes), the longer the wait.
    """
    file = folder / "locks" / key
    handle, waited = _locked(file, time.monotonic() + _LONGEST_WAIT + size / _BYTES_A_SECOND)
    try:
        yield waited
    finally:
        if handle is not None:
            _release(file, handle)


def _locked(file: Path, deadline: float) -> tuple[int | None, bool]:
    """Wait for the lock. Return its handle, None if it is not to be had, and True if it had to be waited for."""
    waited = False
    with contextlib.suppress(OSError, ImportError):
        make_folder(file.parent)
        while time.monotonic() < deadline:
            handle = os.open(file, _OPEN, 0o600)
            try:
                while not (locked := _try_lock(handle)) and _is_still(file, handle) and time.monotonic() < deadline:
                    waited = True
                    time.sleep(_STEP)
                if locked and _is_still(file, handle):
                    return handle, waited
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)
            waited = True
    return None, waited


def _try_lock(handle: int) -> bool:
    """Lock the file unless somebody else has; return True if that worked."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(file: Path, handle: int) -> bool:
    """Return True if ``file`` is what was opened: whoever releases a lock removes its file."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.lstat(file), os.fstat(handle))
    return False


def _release(file: Path, handle: int) -> None:
    import fcntl

    with contextlib.suppress(OSError):
        file.unlink()
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)  # a forked child has the handle too
    os.close(handle)
