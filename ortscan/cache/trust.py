"""Whether another user could put something into a cache folder, or another folder into its place."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from ortscan.cache.own_files import is_own

__all__ = ["why_not_trusted"]

_UIDS, _NOBODY = Path("/proc/self/uid_map"), Path("/proc/sys/kernel/overflowuid")


def why_not_trusted(folder: Path, *parts: str) -> str | None:
    """Return in words what is wrong with ``folder``, or with those of its ``parts`` that are there; None where nothing is.

    Nobody else may be able to write to its parts. Above them each folder belongs to this user or the system, and others who can
    write to it can at least not replace what is there (the sticky bit). Raises OSError where it cannot be looked at.
    """
    if os.name == "nt":
        return None
    inner = os.path.realpath(folder)
    above, path = [], inner
    while True:
        above.append(path)
        if path == os.path.dirname(path):
            break
        path = os.path.dirname(path)
    for path in above:
        with suppress(FileNotFoundError):
            if not _can_hold(os.lstat(path)):
                return f"other users can write to {path!r}, or it belongs to one"
    for part in parts:
        with suppress(FileNotFoundError):
            status = os.lstat(os.path.join(inner, part))
            if not stat.S_ISDIR(status.st_mode) or not is_own(status):
                return f"{os.path.join(inner, part)!r} is no folder of this user's alone"
    return None


def _can_hold(status: os.stat_result) -> bool:
    if status.st_uid not in (os.geteuid(), 0) and not _stands_for_the_system(status.st_uid):
        return False
    if status.st_mode & stat.S_ISVTX or not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return True
    return not status.st_mode & stat.S_IWOTH and _is_of_this_user_alone(status.st_gid)


def _is_of_this_user_alone(gid: int) -> bool:
    """Return whether a group is the user's own, as many systems have one for each."""
    import grp
    import pwd

    with suppress(KeyError):
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
        return user.pw_gid == gid and group.gr_name == user.pw_name and not set(group.gr_mem) - {user.pw_name}
    return False


def _stands_for_the_system(uid: int) -> bool:
    """Return whether ``uid`` is what this user namespace shows for those without a number here, as the system's often is."""
    with suppress(OSError, ValueError):
        ranges = [list(map(int, line.split())) for line in _UIDS.read_text().splitlines()]
        mapped = [range(first, first + count) for first, _, count in ranges]
        return uid == int(_NOBODY.read_text()) and not any(uid in known for known in mapped)
    return False
