"""What of a serialised model says how it is built, and is not the values of a large weight.

Values cannot keep onnxruntime from opening a model, or harm it, whatever they are; so they may be checked while it does.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ortscan.cache.own_files import open_own

__all__ = ["Structure", "has_structure", "structure_of"]

_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
_SIZES = {1: 8, 5: 4}
_VARINT, _BYTES = 0, 2
_LARGE = 64 << 10

Structure = tuple[str, Sequence[Sequence[int]]]
"""A digest of what is between the values of large weights, and where those begin and end."""


def structure_of(content: bytes) -> Structure:
    """Give the structure of ``content``, a ModelProto; all of it is structure where it cannot be read as one."""
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


def _fields(content: bytes, within: tuple[int, int], wanted: int) -> Iterator[tuple[int, int]]:
    """Give where the values of one field of a message begin and end; raises IndexError or KeyError where it is no message."""
    at, end = within
    while at < end:
        tag, at = _number(content, at)
        kind = tag & 7
        if kind == _VARINT:
            _, at = _number(content, at)
            continue
        size = _SIZES.get(kind)
        if size is None:
            if kind != _BYTES:
                raise KeyError(kind)
            size, at = _number(content, at)
        if at + size > end:
            raise IndexError(at)
        if tag >> 3 == wanted and kind == _BYTES:
            yield at, at + size
        at += size


def _number(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
