"""The model of a session as the caller passed it."""

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ortscan.base.paths import UnreadableData, data_file_path, folders_of
from ortscan.cache.digests import digest_of_bytes, digest_of_file
from ortscan.session.outline import Outline, outline_of
from rewrites.base.errors import ModelFileError
from rewrites.base.lazy import lazy

__all__ = ["SessionSource"]

_ORT_MAGIC = slice(4, 8)
_LARGE_FOR_A_PROTO = 16 << 20


@dataclass(frozen=True)
class SessionSource:
    """The model of a session: a path, or bytes.

    Attributes:
        path: the path; None for bytes.
        serialized: the bytes; None for a path.
        folder: the folder in which onnxruntime looks for external data, if the caller chose one; otherwise None.
        ask_memory: a function that returns True if the SessionOptions hold weights in memory. onnxruntime uses these weights
            instead of those in files.
    """

    path: str | None
    serialized: bytes | None
    folder: str | None = None
    ask_memory: Callable[[], bool] | None = None

    @lazy
    def content(self) -> bytes:
        """The bytes of the model. Raise OSError if its file cannot be read."""
        if self.serialized is not None:
            return self.serialized
        assert self.path is not None
        return Path(self.path).read_bytes()

    def fingerprint(self) -> list[str]:
        """Return digests of the current contents of the model and its data files.

        The digest of a missing file is empty. Raise OSError if a file cannot be read, and the errors of ``data_file``.
        """
        own = digest_of_bytes(self.serialized) if self.serialized is not None else digest_of_file(self.path or "")
        files = self.data_files
        return [own, *(digest_of_file(files[location]) if location in files else "" for location in self.outline.locations)]

    @property
    def data_folders(self) -> list[str]:
        """The folders that may contain external data.

        The locations in the model are relative to the first folder.
        """
        if self.folder:
            return [os.path.abspath(self.folder)]
        return folders_of(self.path) if self.path is not None else [os.getcwd()]

    def data_file(self, location: str) -> str:
        """Return the path of the data file that the model calls ``location``.

        Raise ModelFileError if the file is outside the folders of external data, or is not a regular file.
        """
        try:
            return data_file_path(location, self.data_folders)
        except UnreadableData as error:
            raise ModelFileError(f"{self.path or 'the given model'}: external data {error}.") from None

    @property
    def data_files(self) -> dict[str, str]:
        """The paths of the data files that exist, by their locations in the model.

        The dict is empty if the SessionOptions hold weights in memory, because these weights may replace the files. Raise the
        errors of ``data_file``.
        """
        locations = self.outline.locations
        if not locations or self.is_in_memory:
            return {}
        paths = {location: self.data_file(location) for location in locations}
        return {location: path for location, path in paths.items() if os.path.exists(path)}

    @lazy
    def is_in_memory(self) -> bool:
        """True if the SessionOptions hold weights in memory.

        Such weights may replace the contents of data files, so ortscan does not read any data file.
        """
        return self.ask_memory is not None and self.ask_memory()

    @property
    def in_ort_format(self) -> bool:
        """True if the model is in onnxruntime's own format, which only onnxruntime reads."""
        if self.path is not None and self.path.endswith(".ort"):
            return True
        if self.serialized is not None:
            return self.serialized[_ORT_MAGIC] == b"ORTM"
        assert self.path is not None
        with open(self.path, "rb") as file:
            return file.read(8)[_ORT_MAGIC] == b"ORTM"

    @lazy
    def outline(self) -> Outline:
        """The structure of the model without its weights. Raise OSError if the model cannot be read."""
        with self.mapped() as content:
            return outline_of(content)

    @contextmanager
    def mapped(self) -> Iterator[bytes | mmap.mmap]:
        """Yield the bytes of the model.

        The file is mapped into memory, so that only the parts that are used are loaded. Raise OSError if the file cannot be mapped.
        """
        if self.serialized is not None or "content" in vars(self) or not os.path.getsize(self.path or ""):
            yield self.content
            return
        with open(self.path or "", "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content

    @property
    def size(self) -> int:
        """The size of the model in bytes, including external data on disk.

        Raise OSError if a file cannot be read.
        """
        size = len(self.serialized) if self.serialized is not None else os.path.getsize(self.path or "")
        if size < _LARGE_FOR_A_PROTO and not self.is_in_memory:
            with suppress(ModelFileError):
                size += sum(map(os.path.getsize, set(self.data_files.values())))
        return size
