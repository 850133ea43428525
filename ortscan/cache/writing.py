"""Files that are either there as a whole or not at all, whichever processes write them at once.

Nothing is forced onto the disk: what a loss of power damages is noticed when it is read, and made anew.
"""

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

__all__ = ["is_spare", "listed", "make_folder", "replace_file", "spare_name"]

_SPARE = re.compile(r"tmp-\d+-[0-9a-f]{12}")


def make_folder(folder: Path) -> None:
    """Make ``folder``, for this user alone. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def spare_name(folder: Path) -> Path:
    """Give a path in ``folder`` that nobody else uses, for something not finished."""
    return folder / f"tmp-{os.getpid()}-{secrets.token_hex(6)}"


def is_spare(name: str) -> bool:
    """Whether ``spare_name`` gives such names."""
    return _SPARE.fullmatch(name) is not None


def listed(folder: str | os.PathLike[str]) -> list["os.DirEntry[str]"]:
    """Give what is in ``folder``. Raises OSError."""
    with os.scandir(folder) as items:
        return list(items)


def replace_file(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` in one step. Raises OSError."""
    make_folder(path.parent)
    aside = spare_name(path.parent)
    try:
        aside.write_bytes(content)
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise
