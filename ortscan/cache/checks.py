"""Tells a file of the cache that was damaged on disk from a whole one, at the speed at which it is read.

Each block of a file has a check of 32 bits. It is made of a sum for each row of 4 KB, with another odd weight for each word of the
row, which any change of one word changes; and of the parity of each bit over all rows, which tells changes of the highest bits of
two words, lost in a sum to 64 bits. A cryptographic digest would cost as much as onnxruntime needs to load the model, and whoever
can write to the cache could write that too.
"""

import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ortscan.cache.own_files import open_own

if TYPE_CHECKING:
    import numpy as np

__all__ = ["BLOCK", "CHECK_SIZE", "blocks_of", "check_of", "checks_of", "is_whole"]

BLOCK = 256 << 10
CHECK_SIZE = 8
_ROW = 512
_WORD = "<u8"


def checks_of(content: bytes) -> str:
    """Return the checks of all blocks of ``content``, ``CHECK_SIZE`` characters for each."""
    view, room = memoryview(content), bytearray(BLOCK)
    checks = []
    for start in range(0, len(view), BLOCK):
        size = min(BLOCK, len(view) - start)
        room[:size] = view[start : start + size]
        checks.append(check_of(room, size))
    return "".join(checks)


def check_of(room: bytearray, size: int) -> str:
    """Return the check of the first ``size`` bytes of a room for a block; the rest of the room is cleared."""
    import numpy as np

    if size < BLOCK:
        room[size:] = bytes(BLOCK - size)
    rows = np.frombuffer(room, _WORD).reshape(-1, _ROW)
    sums = np.einsum("ij,j->i", rows, _weights())
    return f"{zlib.crc32(np.bitwise_xor.reduce(rows, axis=0), zlib.crc32(sums)):08x}"


@cache
def _weights() -> "np.ndarray[Any, Any]":
    """Odd numbers of 64 bits without a pattern."""
    import numpy as np

    mixed = np.arange(1, _ROW + 1, dtype=_WORD) * np.array(0x9E3779B97F4A7C15, _WORD)
    mixed = (mixed ^ (mixed >> np.array(30, _WORD))) * np.array(0xBF58476D1CE4E5B9, _WORD)
    weights: np.ndarray[Any, Any] = (mixed ^ (mixed >> np.array(27, _WORD))) | np.array(1, _WORD)
    return weights


def blocks_of(path: Path) -> Iterator[tuple[int, bytearray, int]]:
    """Read a file by blocks: give the number of each, the room it is in, which is used again, and its size. Raises OSError."""
    room, number = bytearray(BLOCK), 0
    with open_own(path) as file:
        while size := _filled(file, room):
            yield number, room, size
            number += 1


def _filled(file: Any, room: bytearray) -> int:
    size: int = file.readinto(room)
    while 0 < size < BLOCK and (more := file.readinto(memoryview(room)[size:])):
        size += more
    return size


def is_whole(path: Path, size: int, checks: str) -> bool:
    """Whether the file at ``path`` has the content that ``checks`` were made of."""
    with suppress(OSError):
        if path.stat().st_size != size:
            return False
        return "".join(check_of(room, size) for _, room, size in blocks_of(path)) == checks
    return False
