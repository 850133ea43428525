"""Where an output goes: the file itself, and the name of its external data."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from ortscan.base.paths import is_path, is_path_like
from ortscan.modelio import reading
from ortscan.modelio.data_files import DataFile
from ortscan.modelio.protos import locations_in
from rewrites.base.errors import ModelFileError, OptionError, OrtscanError
from rewrites.base.plain_text import shown

__all__ = ["DataPath", "data_path", "destination"]


def destination(path: str | os.PathLike[str], used: Iterable[DataFile] = ()) -> Path:
    """Return the file to replace or create; a symbolic link is followed. Raises ModelFileError where that cannot be, as where it is
    one of the data files ``used`` by the model to be written, and OptionError for what is no path."""
    if not is_path_like(path):
        raise OptionError(f"output must be a path, not {shown(path)}.")
    if not os.fspath(path):
        raise ModelFileError("The path to write to is empty.")
    if "\0" in os.fsdecode(path):
        raise ModelFileError(f"The path to write to, {shown(os.fsdecode(path))}, has a null character.")
    if not is_path(path):
        raise ModelFileError(f"The path to write to, {shown(path)}, is none that a file system can hold.")
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise ModelFileError(f"{path} is a folder, not a file to write to.")
    if target.exists() and not target.is_file():
        raise ModelFileError(f"{path} is not a regular file.")
    if not target.parent.is_dir():
        raise ModelFileError(f"{path} cannot be written: the folder {target.parent} does not exist.")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise ModelFileError(f"{path} cannot be written: permission denied.")
    if any(file.is_now_at(target) for file in used):
        raise ModelFileError(f"{path} cannot be written: it holds external data of the model.")
    return target


@dataclass(frozen=True)
class DataPath:
    """``path``: where external data is written. ``settled``: the name it is to have in the end, if another.

    ``is_taken``: a file of that name is there, and not of the replaced model. ``obsolete``: files of the replaced model alone.
    """

    path: Path
    settled: Path | None = None
    is_taken: bool = False
    obsolete: tuple[Path, ...] = ()


def data_path(target: Path, source: Path | None, used: Iterable[DataFile]) -> DataPath:
    """Tell where the external data of ``target`` goes: to ``NAME.data``, with a number where a model that stays refers to that.

    Where the model that is replaced refers to it, the new data has to be there under another name first. ``source``: the file that
    the model to be written came from, which uses the data files ``used``.
    """
    usual = target.with_name(f"{target.name}.data")
    if usual.is_dir():
        raise ModelFileError(f"{target} cannot be written: {usual}, where its external data goes, is a folder.")
    numbered = (target.with_name(f"{target.name}.{number}.data") for number in count(1))
    spare = next(path for path in numbered if not os.path.lexists(path))
    own = _own_data(target)
    stays = usual not in own if source is None else os.path.realpath(source) != str(target)
    lent = [file for file in used if stays]
    own = [path for path in own if not any(file.is_now_at(path) for file in lent)]
    obsolete = tuple(path for path in own if path != usual)
    if (source is not None and usual.exists() and usual.samefile(source)) or any(file.is_now_at(usual) for file in lent):
        return DataPath(spare, obsolete=obsolete)
    if not os.path.lexists(usual):
        return DataPath(usual, obsolete=obsolete)
    if usual in own:
        return DataPath(spare, usual, obsolete=obsolete)
    if obsolete:  # an earlier save was cut short
        return DataPath(spare, obsolete=obsolete)
    return DataPath(spare, usual, is_taken=True)


def _own_data(target: Path) -> list[Path]:
    """Return the files of the names used here that the model at ``target`` refers to."""
    name = re.compile(rf"{re.escape(target.name)}(\.\d+)?\.data")
    with suppress(OrtscanError):
        locations = map(os.path.normpath, locations_in(reading.read(target)))
        return [target.with_name(location) for location in locations if name.fullmatch(location)]
    return []
