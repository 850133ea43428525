"""Of processes that start together on a model that is not in the cache, one optimises it and the others wait for what it makes.

The lock goes with the process that holds it, however that ends. Where files cannot be locked, or it takes longer than anybody
should wait, each does the work itself, as it would without others.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ortscan.cache.writing import make_folder

__all__ = ["one_at_a_time"]

_LONGEST_WAIT = 60.0
"""Seconds."""

_BYTES_A_SECOND = 4 << 20
"""What is optimised and compared in a second, at the least."""

_STEP = 0.02
_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@contextlib.contextmanager
def one_at_a_time(folder: Path, key: str, size: int = 0) -> Iterator[bool]:
    """Hold the lock for the entry ``key`` of the cache in ``folder`` while the block runs, where it can be had.

    It is made of a model of ``size`` bytes, and waited for longer where those are many. Gives whether another had the lock before,
    and has done what it could.
    """
    file = folder / "locks" / key
    handle, waited = _locked(file, _LONGEST_WAIT + size / _BYTES_A_SECOND)
    try:
        yield waited
    finally:
        if handle is not None:
            _let_go(file, handle)


def _locked(file: Path, seconds: float) -> tuple[int | None, bool]:
    """Wait for the lock; give None where it cannot be had, and whether it had to be waited for."""
    last, waited = time.monotonic() + seconds, False
    with contextlib.suppress(OSError, ImportError):
        make_folder(file.parent)
        while time.monotonic() < last:
            handle = os.open(file, _OPEN, 0o600)
            try:
                while not (mine := _is_mine(handle)) and _is_still(file, handle) and time.monotonic() < last:
                    waited = True
                    time.sleep(_STEP)
                if mine and _is_still(file, handle):
                    return handle, waited
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)
            waited = True
    return None, waited


def _is_mine(handle: int) -> bool:
    """Lock what ``handle`` is of, where nobody else has."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(file: Path, handle: int) -> bool:
    """Whether ``file`` is what was opened: whoever has had the lock takes it away."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.lstat(file), os.fstat(handle))
    return False


def _let_go(file: Path, handle: int) -> None:
    import fcntl

    with contextlib.suppress(OSError):
        file.unlink()
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)  # a child that was forked meanwhile has the handle too
    os.close(handle)
