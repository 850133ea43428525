"""Files that are either there as a whole or not at all, whichever processes write them at once."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

__all__ = ["make_folder", "replace_file", "spare_name"]


def make_folder(folder: Path) -> None:
    """Make ``folder``, for this user alone. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def spare_name(folder: Path) -> Path:
    """Give a path in ``folder`` that nobody else uses, for something not finished."""
    return folder / f"tmp-{os.getpid()}-{secrets.token_hex(6)}"


def replace_file(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` in one step. Raises OSError."""
    make_folder(path.parent)
    aside = spare_name(path.parent)
    try:
        with aside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise
