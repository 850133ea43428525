"""What of a serialised model says how it is built, and is not the values of a large weight.

Values cannot keep onnxruntime from opening a model, or harm it, whatever they are; so they may be checked while it does.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ortscan.cache.own_files import open_own

if TYPE_CHECKING:
    from mmap import mmap

__all__ = ["Structure", "external_places", "fields_of", "has_structure", "number_at", "structure_of"]

_GRAPH, _INITIALIZER, _RAW_DATA, _EXTERNAL_DATA = 7, 5, 9, 13
_KEY, _VALUE = 1, 2
_SIZES = {1: 8, 5: 4}
_VARINT, _BYTES = 0, 2
_LARGE = 64 << 10
_LAST_SHIFT = 63

Structure = tuple[str, Sequence[Sequence[int]]]
"""A digest of what is between the values of large weights, and where those begin and end."""


def structure_of(content: bytes) -> Structure:
    """Return the structure of ``content``, a ModelProto; all of it is structure where it cannot be read as one."""
    values = []
    try:
        for graph in _fields(content, (0, len(content)), _GRAPH):
            for tensor in _fields(content, graph, _INITIALIZER):
                values += [part for part in _fields(content, tensor, _RAW_DATA) if part[1] - part[0] >= _LARGE]
    except (IndexError, KeyError):
        values = []
    digest, done = hashlib.sha256(), 0
    for start, stop in (*values, (len(content), 0)):
        digest.update(content[done:start])
        done = stop
    return digest.hexdigest(), values


def has_structure(path: Path, size: int, structure: Structure) -> bool:
    """Whether the file at ``path`` has this size and structure; no more of it is read."""
    with suppress(OSError), open_own(path) as file:
        digest, done = hashlib.sha256(), 0
        for start, stop in (*structure[1], (size, 0)):
            file.seek(done)
            digest.update(file.read(start - done))
            done = stop
        return digest.hexdigest() == structure[0] and file.seek(0, 2) == size
    return False


def external_places(content: bytes) -> Iterator[str]:
    """Return the files that weights of a graph are in, by the names the model has for them; raises as ``fields_of`` does."""
    for graph in _fields(content, (0, len(content)), _GRAPH):
        for tensor in _fields(content, graph, _INITIALIZER):
            for entry in _fields(content, tensor, _EXTERNAL_DATA):
                parts = {number: content[start:stop] for number, _, start, stop in fields_of(content, entry)}
                if parts.get(_KEY) == b"location":
                    yield parts.get(_VALUE, b"").decode()


def _fields(content: "bytes | mmap", within: tuple[int, int], wanted: int) -> Iterator[tuple[int, int]]:
    """Return where the values of one field of a message begin and end; raises IndexError or KeyError where it is no message."""
    return ((start, stop) for number, kind, start, stop in fields_of(content, within) if number == wanted and kind == _BYTES)


def fields_of(content: "bytes | mmap", within: tuple[int, int]) -> Iterator[tuple[int, int, int, int]]:
    """Return the number of each field of a message, its kind, and where its value begins and ends; raises as ``_fields`` does."""
    at, end = within
    while at < end:
        tag, at = number_at(content, at)
        kind, start = tag & 7, at
        if kind == _VARINT:
            _, at = number_at(content, at)
        elif kind in _SIZES:
            at += _SIZES[kind]
        elif kind == _BYTES:
            size, start = number_at(content, at)
            at = start + size
        else:
            raise KeyError(kind)
        if at > end:
            raise IndexError(at)
        yield tag >> 3, kind, start, at


def number_at(content: "bytes | mmap", at: int) -> tuple[int, int]:
    """Return the number that begins at ``at``, and where it ends. Raises KeyError if it has more than 64 bits."""
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        if shift > _LAST_SHIFT:
            raise KeyError(at)
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
