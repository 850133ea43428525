"""The model a session was given, before anything is done to it."""

import mmap
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ortscan.base.external_location import OutOfReach, folders_of, real_path
from ortscan.cache.digest import digest_of_bytes, digests_of_files, identity_of_file
from ortscan.cache.given import sample_of
from ortscan.cache.notes import Notes
from ortscan.cache.structure import external_places
from ortscan.session.outline import Outline, outline_of
from rewrites.base.errors import ModelFileError
from rewrites.base.lazy import lazy

__all__ = ["Source"]

_ORT_MAGIC = slice(4, 8)
_LARGE = 256 << 10
_LARGE_FOR_A_PROTO = 16 << 20


@dataclass(frozen=True)
class Source:
    """A path, or the bytes of a model; ``folder`` is where onnxruntime was told to look for external data, if it was.

    ``ask_memory``: asks whether onnxruntime holds weights in memory, which come before those on disk.
    """

    path: str | None
    given: bytes | None
    folder: str | None = None
    ask_memory: Callable[[], bool] | None = None

    @lazy
    def content(self) -> bytes:
        """The bytes of the model. Raises OSError."""
        if self.given is not None:
            return self.given
        assert self.path is not None
        return Path(self.path).read_bytes()

    def digest(self, notes: Notes) -> str:
        """Return the digest of the content; ``notes`` is where what is known of files is kept. Raises OSError."""
        return digest_of_bytes(self.content) if self.path is None else digests_of_files([self.path], notes)[0]

    @lazy
    def sample(self) -> str | None:
        """A digest of some of the bytes, where they are given and so many that a digest of all costs more than comparing them."""
        return sample_of(self.given) if self.given is not None and len(self.given) >= _LARGE else None

    def identity(self) -> list[int | str] | None:
        """Return what tells whether the file is still the same; None for bytes. Raises OSError."""
        return None if self.path is None else identity_of_file(self.path)

    @property
    def data_folder(self) -> str:
        """The folder that external data is relative to."""
        return self.data_folders[0]

    @property
    def data_folders(self) -> list[str]:
        """The folders that external data may be in."""
        if self.folder:
            return [os.path.abspath(self.folder)]
        return folders_of(self.path) if self.path is not None else [os.getcwd()]

    def data_file(self, place: str) -> str:
        """Return the path of external data. Raises ModelFileError where it is outside the model's folder, or no regular file."""
        try:
            return real_path(place, self.data_folders)
        except OutOfReach as error:
            raise ModelFileError(f"{self.path or 'the given model'}: external data {error}.") from None

    @lazy
    def is_in_memory(self) -> bool:
        """Whether external data may be given to onnxruntime in memory. That on disk says nothing then."""
        return self.ask_memory is not None and self.ask_memory()

    def data_files(self, places: Collection[str]) -> list[str]:
        """Return the paths of the external data that is on disk, and counts. Raises as ``data_file`` does."""
        return list(self._on_disk(places).values())

    def data_digests(self, places: Collection[str], notes: Notes) -> dict[str, str]:
        """Return the digests of external data, an empty one of what is not there. Raises OSError, and as ``data_file`` does."""
        found = self._on_disk(places)
        known = dict(zip(found, digests_of_files(list(found.values()), notes), strict=True))
        return {place: known.get(place, "") for place in places}

    def _on_disk(self, places: Collection[str]) -> dict[str, str]:
        if not places or self.is_in_memory:
            return {}
        paths = {place: self.data_file(place) for place in places}
        return {place: path for place, path in paths.items() if os.path.exists(path)}

    @property
    def in_ort_format(self) -> bool:
        """Whether this is in onnxruntime's own format, which only onnxruntime reads."""
        if self.path is not None and self.path.endswith(".ort"):
            return True
        if self.given is not None:
            return self.given[_ORT_MAGIC] == b"ORTM"
        assert self.path is not None
        with open(self.path, "rb") as file:
            return file.read(8)[_ORT_MAGIC] == b"ORTM"

    @lazy
    def outline(self) -> Outline:
        """The structure of the model; the weights of a file are not read for it. Raises OSError."""
        with self.mapped() as content:
            return outline_of(content)

    @contextmanager
    def mapped(self) -> Iterator[bytes | mmap.mmap]:
        """Map the bytes of the model; of a file only those that are read come into memory. Raises OSError."""
        if self.given is not None or "content" in vars(self) or not os.path.getsize(self.path or ""):
            yield self.content
            return
        with open(self.path or "", "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content

    @property
    def size(self) -> int:
        """How many bytes the model has; those of external data on disk count. Raises OSError."""
        size = len(self.given) if self.given is not None else os.path.getsize(self.path or "")
        if size < _LARGE_FOR_A_PROTO and not self.is_in_memory:
            with suppress(IndexError, KeyError, ValueError, ModelFileError):
                places = set(external_places(self.content))
                size += sum(map(os.path.getsize, set(self.data_files(places))))
        return size
