"""One lock for each entry.

If several processes open a new model at once, one of them optimises the model and the others wait.

The lock is released when its process ends or crashes. If files cannot be locked, or after a timeout, each process optimises the
model itself.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ortscan.cache.ownership import make_folder

__all__ = ["entry_lock"]

_LONGEST_WAIT = 60.0
"""The part of the timeout that does not depend on the model's size, in seconds."""

_BYTES_A_SECOND = 4 << 20
"""A low estimate of the bytes of a model that are optimised and verified in a second."""

_STEP = 0.02
_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@contextlib.contextmanager
def entry_lock(folder: Path, key: str, size: int = 0) -> Iterator[bool]:
    """Wait for the lock of the entry ``key`` of the cache in ``folder``, and hold it while the block runs.

    If the wait times out, the block runs without the lock. The timeout grows with ``size``, the size of the model in bytes. Yield
    True if this call had to wait, because another process or thread held the lock.
    """
    file = folder / "locks" / key
    handle, waited = _locked(file, time.monotonic() + _LONGEST_WAIT + size / _BYTES_A_SECOND)
    try:
        yield waited
    finally:
        if handle is not None:
            _release(file, handle)


def _locked(file: Path, deadline: float) -> tuple[int | None, bool]:
    """Wait until this process has locked ``file``, or until the time ``deadline`` of ``time.monotonic``.

    Returns:
        A pair. The first is the handle of the locked file, or None without the lock. The second is True if this call had to wait.
    """
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
    """Lock the file without waiting. Return False if it is locked already."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(file: Path, handle: int) -> bool:
    """Return True if the path ``file`` still leads to the opened file ``handle``.

    A process that releases the lock removes the file, and another process may then create a new file at this path.
    """
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
