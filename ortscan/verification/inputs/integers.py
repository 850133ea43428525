"""Generate integers for inputs.

Depending on the case, the integers are in the range of the input's `Role`, have any magnitude, or are sequence lengths.

Works around ORT-DIVISION-OVERFLOW.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ortscan.verification.inputs.point import Point
from ortscan.verification.inputs.roles import Role

__all__ = [
    "AS_NAMED",
    "ATTEMPTS",
    "OTHER_ATTEMPTS",
    "ROW_KINDS",
    "allows_lengths_of_kind",
    "make_integers",
    "put_alternating",
    "random_booleans",
]

ATTEMPTS = ("by use", "below smallest size", "0 or 1", "ones", "zeros")
"""The ways to draw integers. They are tried in this order until the original accepts the integers."""
AS_NAMED = "as named"
"""The way to draw integers for a model that accepts only certain numbers, such as 8000 and 16000."""
OTHER_ATTEMPTS = ("by use", "near zero", "above zero")
"""The ways to draw unusual integers."""
_EMPTY_ROWS = ("no rows but empty ones", "an empty first row", "an empty last row")
ROW_KINDS = (*_EMPTY_ROWS, "full rows", "short rows")
"""The kinds of values that only sequence lengths can have. They rarely occur among random lengths."""
_BITS = 8
_ENDS = 2
"""In this many of three cases, indices include the smallest and the largest index."""


def make_integers(
    dtype: np.dtype[Any], shape: Sequence[int], point: Point, role: Role | None, attempt: str, random: np.random.Generator
) -> np.ndarray:
    """Return an array of integers for one input.

    Args:
        dtype: the type of the array.
        shape: the shape of the array.
        point: the case. It determines the kind of integers.
        role: the integers that the input can have; None if that is unknown.
        attempt: one of ATTEMPTS, the way to choose the range of the integers.
        random: the source of random numbers.
    """
    by_use, turn = attempt == ATTEMPTS[0], point.seed % 10
    if role is None and by_use and point.kind in ("large integers", "divided integers"):
        return _any_integers(dtype, shape, turn if point.kind == "large integers" else None, random)
    if point.kind == "other integers" and role is not None and (others := role.unusual(point.sizes)):
        return _unusual_integers(others, role.usual(point.sizes), shape, point, attempt, random).astype(dtype)
    low, high = _bounds(dtype, shape, point, role, attempt)
    values = np.asarray(random.integers(low, high, shape, endpoint=True))
    if point.kind == "zeros":
        values = np.full(shape, max(low, min(0, high)))
    elif role is not None and role.positive and values.size:
        values.reshape(-1)[0] = high
    elif role is not None and role.highs and values.size and by_use and point.seed % 3 < _ENDS:
        ends = (high, low) if values.size > 1 else (low if point.seed % 3 else high,)
        values.reshape(-1)[random.choice(values.size, len(ends), replace=False)] = ends
    if point.kind == "empty rows" and role is not None and role.lengths and values.size:
        values[random_booleans(values.shape, random)] = 0
    if allows_lengths_of_kind(role, point.kind):
        values = _row_lengths(values, point.kind, high, random)
    return values.astype(dtype)


def random_booleans(shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Return an array of random booleans.

    About one in eight is True, and at least one is True unless the array is empty.
    """
    chosen = np.asarray(random.random(shape) < 1 / 8)
    if chosen.size:
        chosen.reshape(-1)[random.integers(chosen.size)] = True
    return chosen


def put_alternating(values: np.ndarray, numbers: Sequence[Any], turn: int) -> None:
    """Put ``numbers`` into every second element of ``values``.

    If there are too few numbers, they are repeated. If there are too many numbers for one array, distribute them over several
    arrays: call this function for each array, with ``turn`` = 0, 1, 2 and so on. Each array then starts with the number after the
    last number of the previous array.
    """
    flat = values.reshape(-1)
    positions = range(0, flat.size, 2)
    for position, number in zip(positions, itertools.islice(itertools.cycle(numbers), turn * len(positions), None), strict=False):
        flat[position] = number


def allows_lengths_of_kind(role: Role | None, kind: str) -> bool:
    """Return True if an input with ``role`` can have sequence lengths of the given ``kind``.

    Kinds with lengths of 0 are only possible if onnxruntime accepts such lengths.
    """
    if role is None or kind not in ROW_KINDS:
        return False
    return role.lengths if kind in _EMPTY_ROWS else role.positive and bool(role.highs) and not role.ranges


def _any_integers(dtype: np.dtype[Any], shape: Sequence[int], turn: int | None, random: np.random.Generator) -> np.ndarray:
    """Return an array of integers of all magnitudes.

    Every second element is a special number, at which the behaviour of a model may change. Different values of ``turn`` give
    different special numbers.

    Pass None as ``turn`` for inputs that are divided. Special numbers are then left out, because one of them is the lowest integer,
    and dividing it by -1 crashes onnxruntime.
    """
    info = np.iinfo(dtype)
    bits = _BITS * dtype.itemsize
    drawn = random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    values = np.asarray(drawn >> random.integers(0, bits - 1, shape).astype(dtype)).astype(dtype)
    if turn is None:
        flat = values.reshape(-1)
        flat[:1], flat[1:2] = info.max >> 1, info.min // 2 + 1
    elif values.size > 1 or turn % 2 == 0:
        known = dict.fromkeys(number for number in _special_integers(bits, int(info.max)) if info.min <= number <= info.max)
        put_alternating(values, list(known), turn if values.size > 1 else turn // 2)
    return values


def _special_integers(bits: int, largest: int) -> Iterator[int]:
    """Yield special numbers, at which the behaviour of a model may change.

    The numbers that are most likely to matter come first. Some of the numbers may not fit into the integer type, which has ``bits``
    bits and the largest integer ``largest``.
    """
    yield from (-largest - 1, largest, -1, 0, 1, 100, 1000, 1 << 16, 1 << 31, -largest, largest - 1, 10, -100)
    for power in range(bits):
        yield from (1 << power, 10 ** (power // 3), -(1 << power), (1 << power) - 1)


def _unusual_integers(
    numbers: Sequence[int], usual: Sequence[int], shape: Sequence[int], point: Point, attempt: str, random: np.random.Generator
) -> np.ndarray:
    """Return an array in which unusual ``numbers`` alternate with random ``usual`` numbers.

    An array with a single element contains one of ``numbers``. This number is random if all inputs of the case get unusual
    integers. Otherwise it depends on the seed of ``point``.

    Args:
        numbers: the unusual numbers that the input can have.
        usual: the usual numbers that the input can have.
        shape: the shape of the array.
        point: the case.
        attempt: ``near zero`` or ``above zero`` to use only unusual numbers in this range, if there are any.
        random: the source of random numbers.
    """
    if attempt == "near zero":
        numbers = [number for number in numbers if -1 <= number <= 1] or numbers
    elif attempt == "above zero":
        numbers = [number for number in numbers if number > 0] or numbers
    values = np.asarray(random.choice(np.asarray(numbers if math.prod(shape) == 1 else usual), shape))
    if values.size > 1 or point.only_input:
        put_alternating(values, numbers, point.seed % 10)
    return values


def _bounds(dtype: np.dtype[Any], shape: Sequence[int], point: Point, role: Role | None, attempt: str) -> tuple[int, int]:
    least = 1 if role is not None and role.positive else 0
    match attempt:
        case "zeros":
            return least, least
        case "ones":
            return 1, 1
        case "0 or 1":
            return least, 1
        case "below smallest size":
            return least, max(least, min((size for size in (*point.sizes.values(), *shape) if size > 1), default=2) - 1)
    if role is not None:
        usual = role.usual(point.sizes)
        return usual[0], usual[-1]
    return (0, 9) if dtype.kind == "u" or dtype.name.startswith("uint") else (-5, 9)


def _row_lengths(values: np.ndarray, kind: str, most: int, random: np.random.Generator) -> np.ndarray:
    """Return sequence lengths of the given ``kind``, at most ``most``.

    For some kinds, the result is ``values`` with a few changed elements. ``values`` are lengths from 1 to ``most``.
    """
    first, last = (np.arange(values.size).reshape(values.shape) == position for position in (0, values.size - 1))
    match kind:
        case "no rows but empty ones":
            return np.zeros_like(values)
        case "an empty first row":
            return np.where(first, 0, values)
        case "an empty last row":
            return np.where(last, 0, values)
        case "full rows":
            return np.full_like(values, most)
    return np.asarray(random.integers(1, max(1, most - 1), values.shape, endpoint=True), values.dtype)
