"""Files of the cache are read only where they are regular ones that no other user can have written, and written as such.

A pipe in their place would be waited for, and whoever writes what a session opens decides what it runs.
"""

import os
import stat
from io import FileIO
from pathlib import Path

__all__ = ["is_own", "open_own", "read_own", "write_own"]

_BINARY = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | _BINARY
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
_FOREIGN_WRITERS = stat.S_IWGRP | stat.S_IWOTH
_LARGEST = 1 << 28


def is_own(status: os.stat_result) -> bool:
    """Return whether only this user, or the system's, can write to what ``status`` is of; so it is said of all on Windows."""
    return os.name == "nt" or (status.st_uid in (os.geteuid(), 0) and not status.st_mode & _FOREIGN_WRITERS)


def open_own(path: Path) -> FileIO:
    """Open a file without a buffer. Raises OSError, also where it is no regular one or another user could have written it."""
    handle = os.open(path, _READ)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or not is_own(status):
            raise PermissionError(f"{path} is no file of this user's")
        return FileIO(handle)
    except BaseException:
        os.close(handle)
        raise


def read_own(path: Path) -> bytes:
    """Return what is in a file that is small by nature. Raises OSError as ``open_own`` does."""
    with open_own(path) as file:
        if os.fstat(file.fileno()).st_size > _LARGEST:
            raise PermissionError(f"{path} is too large to be what it should be")
        return file.readall()


def write_own(path: Path, content: bytes) -> None:
    """Write a file that is not there yet, which nobody else can read or write whatever the umask. Raises OSError."""
    handle = os.open(path, _WRITE, 0o600)
    with open(handle, "wb") as file:
        if hasattr(os, "fchmod"):
            os.fchmod(handle, 0o600)
        file.write(content)
