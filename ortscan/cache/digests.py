"""Compute the name of a cache entry.

The name is a digest of the model, its weights, the options, the versions of packages, and ortscan's code.

    entry_key([digest_of_file("m.onnx"), digest_of_file("weights")], {"target": "cpu"})    ->    "3fb2…", 64 hexadecimal digits

Files are read in full at every start, because the time and the size of a file do not show every change.
"""

import functools
import hashlib
import importlib.metadata
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path
from typing import Any

from ortscan.cache.ownership import open_own
from rewrites import __name__ as compiler

__all__ = ["checksum_of_file", "digest_of_bytes", "digest_of_code", "digest_of_file", "entry_key"]

_CHUNK, _PIECE = 4 << 20, 256 << 10
_THREADS = 4
_FORMAT = 3
_PACKAGES = ("numpy", "onnx", "onnx-ir", "onnxruntime")
_CODE = Path(__file__).parents[2]
_OWN_PACKAGES = tuple(dict.fromkeys(name.partition(".")[0] for name in (__name__, compiler)))
"""The packages whose code is part of the digest. In a wheel, ``rewrites`` is inside ``ortscan``."""


def entry_key(digests: Sequence[str], options: Mapping[str, Any]) -> str:
    """Return the name of the cache entry for the digests of a model and its data, and for ``options``.

    Raise OSError if ortscan's code is unreadable.
    """
    words = [_FORMAT, _versions(), digest_of_code(_CODE), digests, sorted(options.items())]
    return hashlib.sha256(json.dumps(words, default=sorted).encode()).hexdigest()


def digest_of_bytes(content: bytes) -> str:
    """Return a digest of ``content``.

    Several threads compute the digests of chunks of ``content``. The result is the digest of these digests.
    """
    view = memoryview(content)
    return _digest(len(view), lambda start: hashlib.sha256(view[start : start + _CHUNK]).digest())


def digest_of_file(path: str) -> str:
    """Return ``digest_of_bytes`` for the content of a file, without loading the whole file.

    Raise OSError if the file is unreadable.
    """

    def chunk(start: int) -> bytes:
        digest = hashlib.sha256()
        with open(path, "rb", buffering=0) as file:
            for piece in _pieces(file, start):
                digest.update(piece)
        return digest.digest()

    return _digest(os.path.getsize(path), chunk)


def checksum_of_file(path: Path) -> str:
    """Return a checksum that detects damage to a cache file. It is twice as fast as a digest.

    Raise OSError if ``path`` is unreadable.
    """

    def chunk(start: int) -> bytes:
        checksum = 0
        with open_own(path) as file:
            for piece in _pieces(file, start):
                checksum = zlib.crc32(piece, checksum)
        return checksum.to_bytes(4, "little")

    return _digest(path.stat().st_size, chunk)


def _pieces(file: FileIO, start: int) -> Iterator[memoryview]:
    """Yield the chunk of ``file`` that begins at ``start``, piece by piece. All pieces share one buffer."""
    file.seek(start)
    buffer, left = memoryview(bytearray(_PIECE)), _CHUNK
    while left and (count := file.readinto(buffer[:left])):
        yield buffer[:count]
        left -= count


def _digest(size: int, digest_of_chunk: Callable[[int], bytes]) -> str:
    starts = range(0, size, _CHUNK)
    workers = min(_THREADS, os.cpu_count() or 1, len(starts))
    if workers > 1:
        with ThreadPoolExecutor(workers) as pool:
            parts = list(pool.map(digest_of_chunk, starts))
    else:
        parts = [digest_of_chunk(start) for start in starts]
    return hashlib.sha256(b"".join(parts) + str(size).encode()).hexdigest()


@functools.cache
def digest_of_code(folder: Path) -> str:
    """Return a digest of ortscan's files below ``folder``, so that different builds share no entries.

    The digest is computed once per process.
    """
    digest = hashlib.sha256()
    for package in _OWN_PACKAGES:
        for parent, folders, names in os.walk(folder / package, onerror=_raise):
            folders[:] = sorted(set(folders) - {"__pycache__"})
            for name in sorted(names):
                path = os.path.join(parent, name)
                with open(path, "rb", buffering=0) as file:
                    content = file.readall()
                digest.update(f"{path.removeprefix(str(folder))} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _raise(error: OSError) -> None:
    raise error


@functools.cache
def _versions() -> tuple[str, ...]:
    return tuple(map(_version, _PACKAGES))


def _version(package: str) -> str:
    if package == "onnxruntime":
        import onnxruntime

        return f"{onnxruntime.__version__} {onnxruntime.get_build_info()}"
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "?"
