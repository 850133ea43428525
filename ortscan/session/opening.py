"""Open an optimised model that uses external data next to the original.

onnxruntime must find the data files, which it looks for below the folder of the model file. There are three ways:

1. The session opens the model as bytes, and an entry of the SessionOptions names the folder. The entry cannot be removed later, and
   would apply to all other models with these SessionOptions. So ortscan only adds it to SessionOptions that it created itself.
2. The session opens a temporary file in the folder of the original. The file is removed when the session has been created.
3. If this folder is read-only, the temporary file is in a temporary folder, together with hard links to the data files or copies of
   them. This is the last choice, because onnx rejects data with two names, and the links would remain if the process were killed.

If the location of a data file is not a path below the folder of the original, the model is rejected. Therefore each location is
also a valid path below a temporary folder.
"""

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ortscan.base.paths import is_below
from ortscan.base.temporary import TemporaryFolder, run_twice
from ortscan.ort.sessions import entry_of
from ortscan.session.applied import Prepared
from ortscan.session.source import SessionSource
from rewrites.base.errors import ModelFileError

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["FOLDER_ENTRY", "model_to_open"]

FOLDER_ENTRY = "session.model_external_initializers_file_folder_path"


@contextlib.contextmanager
def model_to_open(
    prepared: Prepared, options: "ort.SessionOptions | None", is_ours: bool
) -> Iterator[tuple[str | None, bytes | None]]:
    """Yield the model for a session to open: a file as (path, None), or bytes as (None, bytes).

    Open the session inside the ``with`` block, because temporary files are removed when the block ends.

    Args:
        prepared: the model to open.
        options: the SessionOptions of the session.
        is_ours: True if ortscan created ``options``.

    Raises:
        ModelFileError: external data is outside the model's folder, or is not a regular file.
    """
    if prepared.data_of is None:
        yield prepared.path, prepared.content
        return
    content = prepared.content if prepared.content is not None else Path(prepared.path or "").read_bytes()
    if entry_of(options, FOLDER_ENTRY):
        yield None, content
        return
    model = _Model(content, prepared.data_of, prepared.locations)
    folder = next((each for each in map(os.path.realpath, prepared.data_of.data_folders) if model.has_all_data_in(each)), None)
    with contextlib.ExitStack() as stack:
        if is_ours and folder is not None:
            assert options is not None
            options.add_session_config_entry(FOLDER_ENTRY, folder)
            yield None, model.relative_to(folder)
        else:
            yield _beside_its_data(model, folder, stack), None


class _Model:
    """A model that uses external data. ``files`` maps the location of each data file to its real path.

    The constructor raises ModelFileError if a location is invalid. But if the SessionOptions hold weights in memory, it ignores
    invalid locations and missing files, because onnxruntime may not need them.
    """

    def __init__(self, content: bytes, source: SessionSource, locations: Sequence[str]) -> None:
        self.content = content
        self._in_memory = source.is_in_memory
        self.files = {}
        for location in locations:
            with contextlib.suppress(*[ModelFileError] * self._in_memory):
                self.files[location] = source.data_file(location)
        if self._in_memory:
            self.files = {location: path for location, path in self.files.items() if os.path.exists(path)}

    def has_all_data_in(self, folder: str) -> bool:
        """Return True if all data files are in ``folder`` or its subfolders."""
        return all(is_below(path, folder) for path in self.files.values())

    def relative_to(self, folder: str) -> bytes:
        """Return the serialised model with locations of external data relative to ``folder``.

        The locations contain no symbolic links, because onnxruntime does not follow links.
        """
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
        stack.callback(run_twice, lambda: _unlink(path))
        with contextlib.suppress(OSError):
            _write(path, model.relative_to(folder))
            return path
    own = _folder_with(model.files, os.link, stack) or _folder_with(model.files, shutil.copyfile, stack)
    if own is None:
        raise OSError(errno.EIO, "the external data can neither be linked nor copied to a folder where onnxruntime finds it")
    path = os.path.join(own, name)
    _write(path, model.content)
    return path


def _folder_with(files: Mapping[str, str], link_or_copy: Callable[[str, str], object], stack: contextlib.ExitStack) -> str | None:
    """Return a new temporary folder with all ``files``, or None if ``link_or_copy`` raises OSError.

    Args:
        files: the real paths of the data files by location. In the new folder, each file is at the path that its location names.
        link_or_copy: a function that links or copies one file. It gets the old and the new path.
        stack: the stack that removes the folder at the end.
    """
    folder = stack.enter_context(TemporaryFolder())
    try:
        for location, path in files.items():
            os.makedirs(os.path.dirname(os.path.join(folder, location)), 0o700, exist_ok=True)
            link_or_copy(path, os.path.join(folder, location))
    except OSError:
        return None
    return str(folder)


def _write(path: str, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600), "wb") as file:
        file.write(content)


def _unlink(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
