"""Files and folders of the cache that no other user can write to.

Anyone who can write to a cached model controls what the sessions of this user run. So the cache reads only regular files that no
other user could have written. The cache is used only if no other user can replace its folder or a folder above it. Pipes are
rejected, because they would block the reader.
"""

import errno
import os
import stat
from contextlib import suppress
from io import FileIO
from pathlib import Path

__all__ = ["make_folder", "open_own", "read_own", "why_not_trusted", "write_own"]

_BINARY = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | _BINARY
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
_FOREIGN_WRITERS = stat.S_IWGRP | stat.S_IWOTH
_LARGEST = 1 << 28
_UIDS, _NOBODY = Path("/proc/self/uid_map"), Path("/proc/sys/kernel/overflowuid")


def open_own(path: Path) -> FileIO:
    """Open a file without a buffer.

    Raise OSError if ``path`` is no regular file, or if another user could have written the file.
    """
    handle = os.open(path, _READ)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or not _is_own(status):
            raise PermissionError(f"{path} is not a regular file that only this user can write to")
        return FileIO(handle)
    except BaseException:
        os.close(handle)
        raise


def read_own(path: Path) -> bytes:
    """Return the content of a small file.

    Raise the errors of ``open_own``, and OSError if the file is too large.
    """
    with open_own(path) as file:
        if os.fstat(file.fileno()).st_size > _LARGEST:
            raise PermissionError(f"{path} is too large for a file of the cache")
        return file.readall()


def write_own(path: Path, content: bytes) -> None:
    """Write a new file that nobody else can read or write, whatever the umask.

    Raise OSError if ``path`` exists already, or if the file cannot be written.
    """
    handle = os.open(path, _WRITE, 0o600)
    with open(handle, "wb") as file:
        if hasattr(os, "fchmod"):
            os.fchmod(handle, 0o600)
        file.write(content)


def make_folder(folder: Path) -> None:
    """Make ``folder`` and its missing parents for this user alone, whatever the umask.

    Raise OSError if ``folder`` exists but is not a folder, or if other users can write to it.
    """
    if not folder.parent.exists():
        make_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        folder.chmod(0o700)
    if not _is_own_folder(folder.lstat()):
        raise PermissionError(errno.EPERM, "it is not a folder that only this user can write to", str(folder))


def why_not_trusted(folder: Path, *parts: str) -> str | None:
    """Return the reason why the cache in ``folder`` cannot be trusted, or None if it can.

    The cache can be trusted if these conditions hold:

    * Only this user can write to the folders ``parts``, which are names of folders in ``folder``.
    * ``folder`` and all folders above it belong to this user or the system.
    * If other users can write to ``folder`` or a folder above it, the sticky bit keeps them from replacing the content.

    Folders that do not exist are not checked. Raise OSError if a folder cannot be read.
    """
    if os.name == "nt":
        return None
    inner = Path(os.path.realpath(folder))
    for path in (inner, *inner.parents):
        with suppress(FileNotFoundError):
            if not _is_safe_above(path.lstat()):
                return f"other users can write to {str(path)!r}, or own it"
    for part in parts:
        with suppress(FileNotFoundError):
            if not _is_own_folder((inner / part).lstat()):
                return f"{str(inner / part)!r} is not a folder that only this user can write to"
    return None


def _is_own(status: os.stat_result) -> bool:
    """Return True if only this user or root can write to the file or folder.

    On Windows, always return True.
    """
    return os.name == "nt" or (status.st_uid in (os.geteuid(), 0) and not status.st_mode & _FOREIGN_WRITERS)


def _is_own_folder(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode) and _is_own(status)


def _is_safe_above(status: os.stat_result) -> bool:
    """Return True if other users cannot replace files in this folder."""
    if status.st_uid not in (os.geteuid(), 0) and not _is_unmapped_user(status.st_uid):
        return False
    if status.st_mode & stat.S_ISVTX or not status.st_mode & _FOREIGN_WRITERS:
        return True
    return not status.st_mode & stat.S_IWOTH and _is_of_this_user_alone(status.st_gid)


def _is_of_this_user_alone(gid: int) -> bool:
    """Return True if this user is the only member of the group ``gid``.

    Many systems have such a group for each user.
    """
    import grp
    import pwd

    with suppress(KeyError):
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
        return user.pw_gid == gid and group.gr_name == user.pw_name and not set(group.gr_mem) - {user.pw_name}
    return False


def _is_unmapped_user(uid: int) -> bool:
    """Return True if ``uid`` is the substitute that Linux shows for users outside the user namespace.

    In a container, a file of the host's root often has this owner.
    """
    with suppress(OSError, ValueError):
        ranges = [list(map(int, line.split())) for line in _UIDS.read_text().splitlines()]
        mapped = [range(first, first + count) for first, _, count in ranges]
        return uid == int(_NOBODY.read_text()) and not any(uid in known for known in mapped)
    return False
