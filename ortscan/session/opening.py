"""What onnxruntime is given to open, where an optimised model refers to external data beside the original.

onnxruntime looks for external data below the folder of the model file, or for a model in bytes where an entry of the SessionOptions
says. That entry cannot be taken back, and would send every later model of the same SessionOptions there. So it is set only on
SessionOptions of our own; for a caller's, the optimised model stands beside the data while it is opened: for a moment in the
model's own folder, or where nothing can be written there in a folder with second names (hard links) of the data files, or beside
copies. Second names come second, for onnx refuses data that has two, and would for ever where the process is killed meanwhile.

A location names a file below the model's own folder, or the model is refused; so it names one below a folder of ours too.
"""

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ortscan.base.external_location import is_below
from ortscan.base.temporary import TemporaryFolder, insisting
from ortscan.ort.session_entries import entry_of
from ortscan.session.prepared import Prepared
from ortscan.session.source import Source
from rewrites.base.errors import ModelFileError

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["FOLDER_ENTRY", "opened"]

FOLDER_ENTRY = "session.model_external_initializers_file_folder_path"


@contextlib.contextmanager
def opened(prepared: Prepared, options: "ort.SessionOptions | None", is_ours: bool) -> Iterator[tuple[str | None, bytes | None]]:
    """Return the path or the bytes that a session opens; files made for that last as long as the block.

    Raises ModelFileError where external data is outside the model's folder, or no regular file.
    """
    if prepared.data_of is None:
        yield prepared.path, prepared.content
        return
    content = prepared.content if prepared.content is not None else Path(prepared.path or "").read_bytes()
    if entry_of(options, FOLDER_ENTRY):
        yield None, content
        return
    model = _Model(content, prepared.data_of, prepared.locations)
    folder = next((each for each in map(os.path.realpath, prepared.data_of.data_folders) if model.is_of(each)), None)
    with contextlib.ExitStack() as stack:
        if is_ours and folder is not None:
            assert options is not None
            options.add_session_config_entry(FOLDER_ENTRY, folder)
            yield None, model.below(folder)
        else:
            renewal = prepared.renewal
            if renewal is not None:
                renewal.begin()
                stack.callback(renewal.end)
            path = _beside_its_data(model, folder, stack)
            if renewal is not None:
                renewal.linked()
                stack.callback(renewal.unlinking)
            yield path, None


class _Model:
    """A model that refers to external data; ``files``: the real path of each location that has a file on disk.

    What the SessionOptions hold in memory has names that need not be paths at all. Raises ModelFileError where a location is needed
    and not what it may be.
    """

    def __init__(self, content: bytes, source: Source, locations: Sequence[str]) -> None:
        self.content = content
        self._in_memory = source.is_in_memory
        self.files = {}
        for location in locations:
            with contextlib.suppress(*[ModelFileError] * self._in_memory):
                self.files[location] = source.data_file(location)
        if self._in_memory:
            self.files = {location: path for location, path in self.files.items() if os.path.exists(path)}

    def is_of(self, folder: str) -> bool:
        """Whether all files are below ``folder``."""
        return all(is_below(path, folder) for path in self.files.values())

    def below(self, folder: str) -> bytes:
        """Return the model as it is in ``folder``: its data by paths without links, at which onnxruntime would stop."""
        names = {location: os.path.relpath(path, folder) for location, path in self.files.items()}
        if self._in_memory or all(location == name for location, name in names.items()):
            return self.content
        from ortscan.modelio.protos import tensors_in
        from ortscan.modelio.reading import parse

        proto = parse(self.content, "the optimised model")
        for tensor in tensors_in(proto):
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = names[entry.value]
        return bytes(proto.SerializeToString())


def _beside_its_data(model: _Model, folder: str | None, stack: contextlib.ExitStack) -> str:
    name = f".ortscan-{secrets.token_hex(6)}.onnx"
    if folder is not None:
        path = os.path.join(folder, name)
        stack.callback(insisting, lambda: _unlink(path))
        with contextlib.suppress(OSError):
            _write(path, model.below(folder))
            return path
    place = _gathered(model.files, os.link, stack) or _gathered(model.files, shutil.copyfile, stack)
    if place is None:
        raise OSError(errno.EIO, "the external data can neither be linked to nor copied to where onnxruntime finds it")
    path = os.path.join(place, name)
    _write(path, model.content)
    return path


def _gathered(files: Mapping[str, str], bring: Callable[[str, str], object], stack: contextlib.ExitStack) -> str | None:
    """Return a new folder to which ``bring`` has brought the files, or None where it cannot. No location leads out of it."""
    place = stack.enter_context(TemporaryFolder())
    try:
        for location, path in files.items():
            os.makedirs(os.path.dirname(os.path.join(place, location)), 0o700, exist_ok=True)
            bring(path, os.path.join(place, location))
    except OSError:
        return None
    return str(place)


def _write(path: str, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600), "wb") as file:
        file.write(content)


def _unlink(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
