"""Files that are either there as a whole or not at all, whichever processes write them at once.

Nothing is forced onto the disk: what a loss of power damages is noticed when it is read, and made anew.
"""

import errno
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from ortscan.cache.own_files import is_own, write_own

__all__ = ["is_spare", "listed", "make_folder", "replace_file", "spare_name"]

_SPARE = re.compile(r"tmp-\d+-[0-9a-f]{12}")


def make_folder(folder: Path) -> None:
    """Make ``folder`` and those above it that are not there, for this user alone whatever the umask.

    Raises OSError, also where what is there is no folder of this user's alone.
    """
    if not folder.parent.exists():
        make_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        folder.chmod(0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or not is_own(status):
        raise PermissionError(errno.EPERM, "it is no folder of this user's alone", str(folder))


def spare_name(folder: Path) -> Path:
    """Return a path in ``folder`` that nobody else uses, for something not finished."""
    return folder / f"tmp-{os.getpid()}-{secrets.token_hex(6)}"


def is_spare(name: str) -> bool:
    """Whether ``spare_name`` gives such names."""
    return _SPARE.fullmatch(name) is not None


def listed(folder: str | os.PathLike[str]) -> list["os.DirEntry[str]"]:
    """Return what is in ``folder``. Raises OSError."""
    with os.scandir(folder) as items:
        return list(items)


def replace_file(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` in one step. Raises OSError."""
    make_folder(path.parent)
    aside = spare_name(path.parent)
    try:
        write_own(aside, content)
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise
