"""Temporary folders that only this user can read. They are removed after use or after an interrupt."""

import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

__all__ = ["TemporaryFolder", "run_twice"]


class TemporaryFolder:
    """A new temporary folder. Creating it may raise OSError.

    The folder is removed at the end of a ``with`` block, when this object is deleted, or when the process ends. The removal is
    registered before the folder is created. Otherwise an interrupt between these two steps would leave the folder behind.
    """

    def __init__(self) -> None:
        self.path = Path(tempfile.gettempdir(), f"ortscan-{secrets.token_hex(8)}")
        self._remove = weakref.finalize(self, _remove, self.path, os.getpid())
        try:
            self.path.mkdir(0o700)
        except FileExistsError:
            self._remove.detach()
            raise
        self.path.chmod(0o700)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._remove()


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child must not remove the folder of its parent
        run_twice(lambda: shutil.rmtree(path, ignore_errors=True))


def run_twice(work: Callable[[], None]) -> None:
    """Call ``work`` twice, whether the first call succeeds or is interrupted.

    If an interrupt stops the first call, the second call completes the work.
    """
    try:
        work()
    finally:
        work()
