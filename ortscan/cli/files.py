"""What is checked about files before any long work starts."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rewrites.errors import ModelFileError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["check_readable", "check_writable", "read_arrays"]


def check_readable(path: str) -> None:
    """Raise ModelFileError, or OSError, unless ``path`` is a regular file: it is read more than once, so a pipe will not do."""
    if Path(path).is_dir():
        raise ModelFileError(f"{path} is a folder, not a model file.")
    if not stat.S_ISREG(Path(path).stat().st_mode):
        raise ModelFileError(f"{path} is not a regular file.")


def check_writable(path: str) -> None:
    """Raise ModelFileError unless a file can be created or replaced at ``path``; nothing is created."""
    target = Path(path)
    if target.is_dir():
        raise ModelFileError(f"{path} is a folder, not a file to write to.")
    if target.exists() and not target.is_file():
        raise ModelFileError(f"{path} is not a regular file.")
    folder = target.resolve().parent
    if not folder.is_dir():
        raise ModelFileError(f"The folder of {path} does not exist.")
    if not os.access(target if target.exists() else folder, os.W_OK) or not os.access(folder, os.W_OK | os.X_OK):
        raise ModelFileError(f"{path} cannot be written: permission denied.")


def read_arrays(path: str | None) -> "Mapping[str, np.ndarray] | None":
    """Read the arrays of an ``.npz`` file by name; raises ModelFileError where it is none."""
    if path is None:
        return None
    import zipfile

    import numpy as np

    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.lib.npyio.NpzFile):
            with archive:
                return {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ModelFileError(f"{path} is not an .npz file of plain arrays: {error}") from None
    raise ModelFileError(f"{path} is not an .npz file: it holds one array without a name.")
