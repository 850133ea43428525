"""Making input values of any type, for given sizes and for what the input is used for."""

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from ortscan.ort.element_types import numpy_type
from ortscan.running.specs import Spec
from ortscan.verification.values.any_integers import any_integers, in_turn
from ortscan.verification.values.point import Point
from ortscan.verification.values.roles import Role
from ortscan.verification.values.row_lengths import row_lengths, takes_row_kind
from ortscan.verification.values.turning_points import Known
from rewrites.base.errors import OptionError

__all__ = ["AS_NAMED", "ATTEMPTS", "FLOAT_KINDS", "OTHER_ATTEMPTS", "WORDS", "is_integer", "make_value", "shape_of", "unmakeable"]

ATTEMPTS = ("by use", "below smallest size", "0 or 1", "ones", "zeros")
"""How integers are drawn, in this order while the original refuses them."""

AS_NAMED = "as named"
"""How they are drawn where the model compares them with numbers, such as 8000 and 16000, and runs with no others."""

OTHER_ATTEMPTS = ("by use", "near zero", "above zero")
"""How integers are drawn that are to be others than the usual ones."""

FLOAT_KINDS = frozenset(["large", "mixed", "zeros", "huge", "tiny", "infinite", "NaN", "steady", "steady across"])
"""The kinds of values that floats take and indices do not."""

_ITEMS = {"no items": 0, "many items": 7, "ragged": 3}
_USUAL_ITEMS = (1, 2, 3, 5, 4, 8, 6, 9)
WORDS = ("a", "b", "ab", "token", "z9", "é", "a b", "", "42", "Token", "-1.5", "x@y.z")
_MOST_ELEMENTS = 1 << 28
_MOST_AXES = 64
_ONE_IN_FOUR = 0.25
_ONE_UNLIKE = {3: True, 4: False}
"""Of five cases these have one truth unlike the others."""
_ENDS = 2
"""Of three cases so many have the ends of what indices may be."""
_MIXED = (*(-1.0, -0.5, 0.0, 0.5, 1.0, 2.0) * 2, -4.0, -3.5, -2.5, -1.5, 1.5, 2.5, 3.5, 4.0)
"""Halves, the small ones more often: their sums are exact, and some are equal."""


def is_integer(spec: Spec) -> bool:
    """Whether the values of an input are whole numbers, which more often than not have a meaning."""
    return spec.elem_type in _INTEGERS


def unmakeable(spec: Spec) -> str | None:
    """Why no value can be made up for an input, or None."""
    if spec.kind == "other":
        return f"input '{spec.name}' is {spec.declared}: pass it in inputs"
    if spec.dims is None:
        return f"input '{spec.name}' has no declared rank: pass it in inputs, or its shape in shapes"
    if len(spec.dims) > _MOST_AXES:
        return f"input '{spec.name}' has {len(spec.dims)} axes, and an array of numpy's {_MOST_AXES} at most"
    if spec.elem_type not in _MAKEABLE:
        return f"input '{spec.name}' is {spec.declared}, which onnxruntime cannot be fed from Python"
    return None


def shape_of(spec: Spec, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a tensor input where the free dimensions have ``sizes``."""
    return tuple(dim if isinstance(dim, int) else sizes[dim] for dim in spec.dims or ())


def make_value(spec: Spec, point: Point, role: Role | None, attempt: str, seed: int, named: Sequence[Known] = ()) -> Any:
    """A value for one input: an array, a list of arrays for a sequence, None for an optional that is absent.

    Values ``named`` take every second place. The same arguments give the same value. Raises OptionError where `unmakeable` has a
    reason.
    """
    reason = unmakeable(spec)
    if reason is not None:
        raise OptionError(reason)
    random = np.random.default_rng([seed, point.draw, zlib.crc32(spec.name.encode("utf-8", "surrogatepass"))])
    shape = shape_of(spec, point.sizes)
    if math.prod(shape) > _MOST_ELEMENTS:
        sizes = ", ".join(map(str, shape))
        raise OptionError(f"input '{spec.name}' would be {sizes}, too large to be made up: pass it in inputs, or smaller shapes.")
    if spec.optional and point.kind == "absent":
        return None
    if spec.kind == "sequence":
        shapes = [shape] * _ITEMS.get(point.kind, _USUAL_ITEMS[point.draw % len(_USUAL_ITEMS)])
        if point.kind == "ragged":
            free = next((axis for axis, dim in enumerate(spec.dims or ()) if isinstance(dim, str)), -1)
            shapes = [tuple(size + more * (axis == free) for axis, size in enumerate(shape)) for more in range(len(shapes))]
        return [_make_named(spec, each, point, role, attempt, random, named) for each in shapes]
    return _make_named(spec, shape, point, role, attempt, random, named)


def _make_named(
    spec: Spec,
    shape: tuple[int, ...],
    point: Point,
    role: Role | None,
    attempt: str,
    random: np.random.Generator,
    named: Sequence[Known],
) -> np.ndarray:
    values = _make_array(spec, shape, point, role, attempt, random)
    if named:
        in_turn(values, named, point.draw % 10)
    return values


def _make_array(
    spec: Spec, shape: tuple[int, ...], point: Point, role: Role | None, attempt: str, random: np.random.Generator
) -> np.ndarray:
    dtype = numpy_type(spec.elem_type)
    if spec.name in point.trips:
        return np.full(shape, point.trips[spec.name]).astype(dtype)
    if spec.elem_type == onnx.TensorProto.STRING:
        return np.asarray(random.choice(np.array(WORDS, object), shape), object)
    if spec.elem_type == onnx.TensorProto.BOOL:
        return _truths(shape, point, random)
    if is_integer(spec):
        return _whole_numbers(dtype, shape, point, role, attempt, random)
    if role is None or (attempt == ATTEMPTS[0] and point.kind in FLOAT_KINDS and not role.decisive):
        return np.asarray(_floats(shape, point.kind, random)).astype(dtype)
    whole = _whole_numbers(np.dtype(np.float64), shape, point, role, attempt, random)
    with_parts = attempt == ATTEMPTS[0] and point.draw % 2 == 1
    return np.asarray(whole + random.random(shape) if with_parts else whole).astype(dtype)


def _floats(shape: tuple[int, ...], kind: str, random: np.random.Generator) -> np.ndarray:
    match kind:
        case "zeros":
            return np.zeros(shape)
        case "huge":
            return np.asarray(random.choice((-1.0, 1.0), shape) * random.uniform(100, 1000, shape))
        case "tiny":
            return np.asarray(random.choice((-1.0, 1.0), shape) * 10 ** random.uniform(-7, -4, shape))
        case "infinite" | "NaN":
            values = random.standard_normal(shape)
            for special in (np.inf, -np.inf) if kind == "infinite" else (np.nan,):
                values = np.where(_some(shape, random), special, values)
            return values
        case "large":
            return 10 * random.standard_normal(shape)
        case "steady" if len(shape) > 1:
            return np.array(np.broadcast_to(_floats(shape[1:], "huge", random), shape))
        case "steady across" if len(shape) > 2:
            return np.array(np.broadcast_to(_floats((shape[0], 1, *shape[2:]), "huge", random), shape))
        case "named":
            return np.asarray(random.choice([number for number in _MIXED if number], shape))
        case "mixed":
            padding = random.random((*shape[:-1], 1) if shape else ()) < 0.3
            values = np.array(np.where(padding, 0.0, random.choice(_MIXED, shape)))
            if values.size > 1 or (values.size == 1 and random.random() < _ONE_IN_FOUR):
                values.reshape(-1)[random.integers(values.size)] = -0.0
            return values
    return random.standard_normal(shape)


def _some(shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Return truths, one in eight of them true, and one at least."""
    some = np.asarray(random.random(shape) < 1 / 8)
    if some.size:
        some.reshape(-1)[random.integers(some.size)] = True
    return some


def _truths(shape: Sequence[int], point: Point, random: np.random.Generator) -> np.ndarray:
    if point.kind == "normal" and point.draw % 5 in _ONE_UNLIKE and math.prod(shape) > 1:
        truths = np.full(shape, _ONE_UNLIKE[point.draw % 5])
        truths.reshape(-1)[random.integers(truths.size)] ^= True
        return truths
    share = {"zeros": 0.0, "large": 1.0, "mixed": 0.2}.get(point.kind, 0.5)
    return np.asarray(random.random(shape) < share)


def _whole_numbers(
    dtype: np.dtype[Any], shape: Sequence[int], point: Point, role: Role | None, attempt: str, random: np.random.Generator
) -> np.ndarray:
    if point.kind == "large integers" and role is None and attempt == ATTEMPTS[0]:
        return any_integers(dtype, shape, point.draw % 10, random)
    if point.kind == "divided integers" and role is None and attempt == ATTEMPTS[0]:
        return any_integers(dtype, shape, None, random)
    if point.kind == "other integers" and role is not None and (others := role.others(point.sizes)):
        return _others(others, role.usual(point.sizes), shape, point, attempt, random).astype(dtype)
    low, high = _bounds(dtype, shape, point, role, attempt)
    values = np.asarray(random.integers(low, high, shape, endpoint=True))
    if point.kind == "zeros":
        values = np.full(shape, max(low, min(0, high)))
    elif role is not None and role.positive and values.size:
        values.reshape(-1)[0] = high
    elif role is not None and role.highs and values.size and attempt == ATTEMPTS[0] and point.draw % 3 < _ENDS:
        _put_ends(values, low, high, point.draw, random)
    if point.kind == "empty rows" and role is not None and role.lengths and values.size:
        values[_some(values.shape, random)] = 0
    if takes_row_kind(role, point.kind):
        values = row_lengths(values, point.kind, high, random)
    return values.astype(dtype)


def _put_ends(values: np.ndarray, low: int, high: int, draw: int, random: np.random.Generator) -> None:
    """Put the greatest and the least index somewhere, or one of them where there is one place only."""
    ends = (high, low) if values.size > 1 else (low if draw % 3 else high,)
    values.reshape(-1)[random.choice(values.size, len(ends), replace=False)] = ends


def _others(
    numbers: Sequence[int], usual: Sequence[int], shape: Sequence[int], point: Point, attempt: str, random: np.random.Generator
) -> np.ndarray:
    """Return ``numbers`` one after the other, with ``usual`` ones between them; of all inputs' single elements random ones."""
    if attempt == "near zero":
        numbers = [number for number in numbers if -1 <= number <= 1] or numbers
    elif attempt == "above zero":
        numbers = [number for number in numbers if number > 0] or numbers
    values = np.asarray(random.choice(np.asarray(numbers if math.prod(shape) == 1 else usual), shape))
    if values.size > 1 or point.only:
        in_turn(values, numbers, point.draw % 10)
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
    signed = dtype.kind != "u" and not dtype.name.startswith("uint")
    return (-5, 9) if signed else (0, 9)


_TYPES = onnx.TensorProto
_INTEGERS = frozenset(
    [_TYPES.INT8, _TYPES.INT16, _TYPES.INT32, _TYPES.INT64, _TYPES.UINT8, _TYPES.UINT16, _TYPES.UINT32, _TYPES.UINT64]
)
_FLOATS = frozenset([_TYPES.FLOAT, _TYPES.DOUBLE, _TYPES.FLOAT16, _TYPES.BFLOAT16])
_FLOATS8 = frozenset([_TYPES.FLOAT8E4M3FN, _TYPES.FLOAT8E4M3FNUZ, _TYPES.FLOAT8E5M2, _TYPES.FLOAT8E5M2FNUZ])
_MAKEABLE = _INTEGERS | _FLOATS | _FLOATS8 | {_TYPES.BOOL, _TYPES.STRING}
