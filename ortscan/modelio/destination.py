"""Where an output goes: the file itself, and the name of its external data."""

import os
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from ortscan.modelio.data_files import DataFile
from rewrites.errors import ModelFileError, OptionError

__all__ = ["data_path", "destination"]


def destination(path: str | os.PathLike[str]) -> Path:
    """Give the file to replace or create; a symbolic link is followed. Raises ModelFileError where that cannot be,
    and OptionError for what is no path."""
    if not isinstance(path, str | os.PathLike):
        raise OptionError(f"output must be a path, not {path!r}.")
    if not os.fspath(path):
        raise ModelFileError("The path to write to is empty.")
    if "\0" in os.fsdecode(path):
        raise ModelFileError(f"The path to write to, {os.fsdecode(path)!r}, has a null character.")
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise ModelFileError(f"{path} is a folder, not a file to write to.")
    if target.exists() and not target.is_file():
        raise ModelFileError(f"{path} is not a regular file.")
    if not target.parent.is_dir():
        raise ModelFileError(f"{path} cannot be written: the folder {target.parent} does not exist.")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise ModelFileError(f"{path} cannot be written: permission denied.")
    return target


def data_path(target: Path, source: Path | None, used: Iterable[DataFile]) -> Path:
    """Give the file for the external data of ``target``: ``NAME.data``.

    A number is added where that is the data of the model being saved and ``target`` is not the file it came from, as the
    original would be left with the wrong data.
    """
    usual = target.with_name(f"{target.name}.data")
    if usual.is_dir():
        raise ModelFileError(f"{target} cannot be written: {usual}, where its external data goes, is a folder.")
    replaces_source = target.exists() and (source is None or (source.exists() and target.samefile(source)))
    files = list(used)
    if replaces_source or not any(file.is_now_at(usual) for file in files):
        return usual
    numbered = (target.with_name(f"{target.name}.{number}.data") for number in count(1))
    return next(path for path in numbered if not os.path.lexists(path))
