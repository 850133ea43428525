"""Integers for inputs that may have any value: the extremes of the type, powers of two and ten, random ones of all magnitudes.

Works round ORT-DIVISION-OVERFLOW.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

__all__ = ["any_integers", "in_turn"]

_BITS = 8


def any_integers(dtype: np.dtype[Any], shape: Sequence[int], turn: int | None, random: np.random.Generator) -> np.ndarray:
    """Return random numbers of the type, every second one of them noteworthy: other ones each ``turn``, none where that is None.

    Without them the least number does not occur, nor what makes it: divided by -1 it ends onnxruntime's process.
    """
    info = np.iinfo(dtype)
    bits = _BITS * dtype.itemsize
    drawn = random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    values = np.asarray(drawn >> random.integers(0, bits - 1, shape).astype(dtype)).astype(dtype)
    if turn is None:
        flat = values.reshape(-1)
        flat[:1], flat[1:2] = info.max >> 1, info.min // 2 + 1
    elif values.size > 1 or turn % 2 == 0:
        known = dict.fromkeys(number for number in _noteworthy(bits, int(info.max)) if info.min <= number <= info.max)
        in_turn(values, list(known), turn if values.size > 1 else turn // 2)
    return values


def in_turn(values: np.ndarray, numbers: Sequence[Any], turn: int) -> None:
    """Put ``numbers`` into every second element, going on where the turn before ended."""
    flat = values.reshape(-1)
    places = range(0, flat.size, 2)
    for place, number in zip(places, itertools.islice(itertools.cycle(numbers), turn * len(places), None), strict=False):
        flat[place] = number


def _noteworthy(bits: int, largest: int) -> Iterator[int]:
    """Return numbers at which something may change, the most likely first."""
    yield from (-largest - 1, largest, -1, 0, 1, 100, 1000, 1 << 16, 1 << 31, -largest, largest - 1, 10, -100)
    for power in range(bits):
        yield from (1 << power, 10 ** (power // 3), -(1 << power), (1 << power) - 1)
