"""Files of external data.

A file is opened when the model is loaded, and mapped when it is first read. The file stays open. So if it is replaced on disk, for
example because a model is saved over itself, the tensors of the loaded model do not change. Only the first 64 files of a model stay
open. Any other file is opened again for each read. If such a file has changed, reading raises an error.
"""

import errno
import mmap
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import onnx_ir as ir

from ortscan.base.paths import open_regular
from rewrites.base.errors import ModelFileError
from rewrites.base.plain_text import quoted

__all__ = ["DataFile", "DataFiles"]

_HELD = 64
_CHUNK = 1 << 22
_NO_KERNEL_COPY = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EXDEV}


class DataFile:
    """A data file. Creating it raises OSError if the file cannot be opened.

    Reading raises ModelFileError if the file has changed meanwhile.
    """

    def __init__(self, path: str, hold: bool) -> None:
        self.path = path
        self.readers: list[ir.ExternalTensor] = []
        """The tensors of the caller's model that read this file by its path."""
        self._map: mmap.mmap | None = None
        self._held: int | None = None
        file = open_regular(path)
        try:
            self._identity = _identity(file)
        except OSError:
            os.close(file)
            raise
        self.size = self._identity[2]
        if hold:
            self._held = file
            weakref.finalize(self, os.close, file)
        else:
            os.close(file)

    def is_now_at(self, path: Path) -> bool:
        """Return True if ``path`` currently names this file."""
        try:
            status = path.stat()
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity[:2]

    def view(self, offset: int, length: int) -> memoryview:
        """Return ``length`` bytes at ``offset``.

        If the file stays open, the bytes are part of a memory map that all reads share.
        """
        if self._held is None:
            with self._open() as file:
                return memoryview(b"".join(self._chunks(file, offset, length)))
        if self._map is None:
            self._map = mmap.mmap(self._held, 0, access=mmap.ACCESS_READ)
        return memoryview(self._map)[offset : offset + length]

    def append_to(self, target: BinaryIO, offset: int, length: int) -> None:
        """Append ``length`` bytes at ``offset`` to ``target``.

        If the operating system can copy the bytes from file to file, this process does not load them into memory.
        """
        target.flush()
        with self._open() as file:
            done = _kernel_copy(file, target.fileno(), offset, length)
            target.seek(0, os.SEEK_END)
            for chunk in self._chunks(file, offset + done, length - done):
                target.write(chunk)

    @contextmanager
    def _open(self) -> Iterator[int]:
        if self._held is not None:
            yield self._held
            return
        try:
            file = open_regular(self.path)
        except OSError as error:
            raise ModelFileError(f"External data {quoted(self.path)} cannot be read any more: {error.strerror}.") from None
        try:
            if _identity(file) != self._identity:
                raise ModelFileError(f"External data {quoted(self.path)} was changed after the model was loaded.")
            yield file
        finally:
            os.close(file)

    def _chunks(self, file: int, offset: int, length: int) -> Iterator[bytes]:
        end = offset + length
        while offset < end:
            chunk = _read_at(file, min(_CHUNK, end - offset), offset)
            if not chunk:
                raise ModelFileError(f"External data {quoted(self.path)} became shorter after the model was loaded.")
            yield chunk
            offset += len(chunk)


class DataFiles:
    """The data files of one model, each opened once."""

    def __init__(self) -> None:
        self._files: dict[str, DataFile] = {}

    def get(self, path: str) -> DataFile:
        """Return the file at ``path``, which must contain no links.

        Raise OSError if the file cannot be opened.
        """
        if path not in self._files:
            self._files[path] = DataFile(path, hold=len(self._files) < _HELD)
        return self._files[path]

    def __iter__(self) -> Iterator[DataFile]:
        return iter(self._files.values())


def _identity(file: int) -> tuple[int, int, int, int]:
    status = os.fstat(file)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _read_at(file: int, count: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(file, count, offset)
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, count)


def _kernel_copy(source: int, target: int, offset: int, length: int) -> int:
    if not hasattr(os, "copy_file_range"):
        return 0
    done, end = 0, os.fstat(target).st_size
    try:
        while done < length:
            step = os.copy_file_range(source, target, length - done, offset + done, end + done)
            if step == 0:
                break
            done += step
    except OSError as error:
        if error.errno not in _NO_KERNEL_COPY:
            raise
    return done
