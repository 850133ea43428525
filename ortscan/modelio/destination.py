"""Choose the files for a model and its external data, and replace all these files or none of them."""

import os
import re
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import onnx

from ortscan.base.paths import is_path, is_path_like
from ortscan.base.temporary import run_twice
from ortscan.modelio import reading
from ortscan.modelio.data_files import DataFile
from ortscan.modelio.protos import locations_in
from rewrites.base.errors import ModelFileError, OptionError, OrtscanError
from rewrites.base.plain_text import shown

__all__ = ["DataPath", "Replacement", "data_path", "destination", "write_model"]


def destination(path: str | os.PathLike[str], used: Iterable[DataFile] = ()) -> Path:
    """Return the file to which ``path`` leads after all symbolic links. The file need not exist.

    Args:
        path: the path to write a model to.
        used: the data files of this model. They must not be overwritten.

    Raises:
        OptionError: ``path`` is not a path.
        ModelFileError: the file cannot be written, or is one of the files ``used``.
    """
    if not is_path_like(path):
        raise OptionError(f"output must be a path, not {shown(path)}.")
    if not os.fspath(path):
        raise ModelFileError("The path to write to is empty.")
    if "\0" in os.fsdecode(path):
        raise ModelFileError(f"The path to write to, {shown(os.fsdecode(path))}, has a null character.")
    if not is_path(path):
        raise ModelFileError(f"The path to write to, {shown(path)}, is not valid on this system.")
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
    """The files for the external data of a model.

    The model replaces an older model if one exists at its destination.

    Args:
        path: the file to write the data to first.
        final_path: the file to copy the data to afterwards, or None if the data stays at ``path``.
        is_taken: True if a file ``final_path`` exists, but is not external data of the older model.
        obsolete: the other files of external data that only the older model needs.
    """

    path: Path
    final_path: Path | None = None
    is_taken: bool = False
    obsolete: tuple[Path, ...] = ()


def data_path(target: Path, source: Path | None, used: Iterable[DataFile]) -> DataPath:
    """Choose the files for the external data of the model file ``target``.

    NAME is the name of ``target``. The choice depends on the file ``NAME.data``:

    * There is no such file: the data is written to ``NAME.data``.
    * The file holds data of the model that is now at ``target`` and will be replaced: the data is written to a numbered file, such
      as ``NAME.1.data``, and then copied to ``NAME.data``.
    * The file is ``source`` or one of the files ``used``, and must therefore stay: the data is written to a numbered file.
    * The file belongs to something else: the data is written to a numbered file. ``is_taken`` is True in the result, unless the
      model at ``target`` refers to a numbered file because an earlier save was interrupted.

    Args:
        target: the model file to write.
        source: the file that the model was read from, or None.
        used: the data files of the model.

    Raises:
        ModelFileError: ``NAME.data`` is a folder.
    """
    usual = target.with_name(f"{target.name}.data")
    if usual.is_dir():
        raise ModelFileError(f"{target} cannot be written: {usual}, where its external data goes, is a folder.")
    numbered = (target.with_name(f"{target.name}.{number}.data") for number in count(1))
    spare = next(path for path in numbered if not os.path.lexists(path))
    own = _own_data(target)
    stays = usual not in own if source is None else os.path.realpath(source) != str(target)
    shared = [file for file in used if stays]
    own = [path for path in own if not any(file.is_now_at(path) for file in shared)]
    obsolete = tuple(path for path in own if path != usual)
    if (source is not None and usual.exists() and usual.samefile(source)) or any(file.is_now_at(usual) for file in shared):
        return DataPath(spare, obsolete=obsolete)
    if not os.path.lexists(usual):
        return DataPath(usual, obsolete=obsolete)
    if usual in own:
        return DataPath(spare, usual, obsolete=obsolete)
    if obsolete:  # an earlier save was interrupted
        return DataPath(spare, obsolete=obsolete)
    return DataPath(spare, usual, is_taken=True)


def _own_data(target: Path) -> list[Path]:
    """Return the files ``NAME.data`` and ``NAME.<number>.data`` that the model at ``target`` refers to."""
    name = re.compile(rf"{re.escape(target.name)}(\.\d+)?\.data")
    with suppress(OrtscanError):
        locations = map(os.path.normpath, locations_in(reading.read(target)))
        return [target.with_name(location) for location in locations if name.fullmatch(location)]
    return []


class Replacement:
    """A context manager that writes temporary files, and then moves them to their destinations.

    ``open`` creates a temporary file in the folder of its destination. ``commit`` moves the files in the order in which they were
    opened.

    A file gets the permissions (and the owner, if allowed) of the file that it replaces. Hard links to the replaced file keep the
    old content. If a move fails, new files from earlier moves are removed, but replaced files are not restored. So only the last
    file should replace a file that is in use. The methods raise OSError if a file cannot be written or moved.
    """

    def __init__(self) -> None:
        self._written: list[tuple[BinaryIO, Path, Path]] = []
        self._strays: set[Path] = set()
        self._new: set[Path] = set()
        self._was_done: bool | None = None

    def __enter__(self) -> "Replacement":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        run_twice(self.clear)

    def clear(self) -> None:
        """Remove all files that were not moved to their destinations."""
        self._was_done = self.is_done
        for file, _, _ in self._written:
            with suppress(OSError):
                file.close()
        if not self._was_done:
            self._strays.update(final for _, path, final in self._written if final in self._new and not os.path.lexists(path))
        for path in self._strays:
            with suppress(OSError):
                path.unlink()

    @property
    def is_done(self) -> bool:
        """Return True if all files are at their destinations.

        This property looks at the disk. A flag could be wrong: an interrupt may occur after the last file was moved, and before
        the flag is set.
        """
        if self._was_done is not None:
            return self._was_done
        return bool(self._written) and not os.path.lexists(self._written[-1][1])

    def open(self, final: Path) -> BinaryIO:
        """Return a new empty file that ``commit`` moves to ``final``."""
        temporary = self._temporary_path(final)
        file = temporary.open("x+b")
        self._written.append((file, temporary, final))
        if final.is_file() and not final.is_symlink():
            status = final.stat()
            with suppress(OSError, AttributeError):
                os.chown(temporary, status.st_uid, status.st_gid)
            temporary.chmod(stat.S_IMODE(status.st_mode))
        return file

    def commit(self) -> None:
        """Move all files to their destinations.

        If one of the destinations exists, flush all files to disk first.
        """
        replaces = any(os.path.lexists(final) for _, _, final in self._written)
        for file, _, _ in self._written:
            file.flush()
            if replaces:
                os.fsync(file.fileno())
            file.close()
        self._new.update(final for _, _, final in self._written if not os.path.lexists(final))
        for _, temporary, final in self._written:
            os.replace(temporary, final)

    def _temporary_path(self, final: Path) -> Path:
        path = final.with_name(f".ortscan-{secrets.token_hex(6)}.tmp")
        self._strays.add(path)
        return path


def write_model(proto: onnx.ModelProto, target: Path, files: Replacement) -> None:
    """Write ``proto`` to a temporary file that ``files.commit`` moves to ``target``.

    The suffix of ``target`` decides the format. Raise ModelFileError if the format cannot represent the model, and OSError if
    writing fails.
    """
    form = reading.format_of(target)
    if proto.ByteSize() > reading.PROTOBUF_LIMIT:
        raise ModelFileError(f"{target} cannot be written: it would exceed 2 GB without its initializers.")
    if form == "onnxtxt":
        content = onnx.printer.to_text(proto).encode()
    else:
        content = onnx.serialization.registry.get(form).serialize_proto(proto)
    if form != "protobuf" and reading.parse(content, str(target), form) != proto:
        raise ModelFileError(f"{target} cannot be written: the {form} format cannot represent this model; write .onnx instead.")
    files.open(target).write(content)
