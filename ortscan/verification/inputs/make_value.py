"""Generate a value for one input of any type. The `Role` of the input limits the elements."""

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from ortscan.ort.element_types import numpy_type
from ortscan.running.specs import SessionSpec
from ortscan.verification.inputs.integers import ATTEMPTS, make_integers, put_alternating, random_booleans
from ortscan.verification.inputs.point import Point
from ortscan.verification.inputs.roles import Role
from ortscan.verification.inputs.turning_points import Known
from rewrites.base.errors import OptionError

__all__ = ["FLOATS", "FLOAT_KINDS", "WORDS", "is_integer", "make_value", "shape_of", "unmakeable"]

FLOAT_KINDS = frozenset(["large", "mixed", "zeros", "huge", "tiny", "infinite", "NaN", "steady", "steady across"])
"""The kinds of values that are possible for floats but not for indices."""

_ITEMS = {"no items": 0, "many items": 7, "ragged": 3}
_USUAL_ITEMS = (1, 2, 3, 5, 4, 8, 6, 9)
WORDS = ("a", "b", "ab", "token", "z9", "é", "a b", "", "42", "Token", "-1.5", "x@y.z")
_MOST_ELEMENTS = 1 << 28
_MOST_AXES = 64
_ONE_IN_FOUR = 0.25
_ONE_UNLIKE = {3: True, 4: False}
"""In these two of five cases, all booleans have this value except one boolean."""
_MIXED = (*(-1.0, -0.5, 0.0, 0.5, 1.0, 2.0) * 2, -4.0, -3.5, -2.5, -1.5, 1.5, 2.5, 3.5, 4.0)
"""Multiples of 1/2, in which small numbers occur twice. Sums of such numbers are exact, and often equal."""

_TYPES = onnx.TensorProto
_INTEGERS = frozenset(
    [_TYPES.INT8, _TYPES.INT16, _TYPES.INT32, _TYPES.INT64, _TYPES.UINT8, _TYPES.UINT16, _TYPES.UINT32, _TYPES.UINT64]
)
FLOATS = frozenset([_TYPES.FLOAT, _TYPES.DOUBLE, _TYPES.FLOAT16, _TYPES.BFLOAT16])
_FLOATS8 = frozenset([_TYPES.FLOAT8E4M3FN, _TYPES.FLOAT8E4M3FNUZ, _TYPES.FLOAT8E5M2, _TYPES.FLOAT8E5M2FNUZ])
_MAKEABLE = _INTEGERS | FLOATS | _FLOATS8 | {_TYPES.BOOL, _TYPES.STRING}


def is_integer(spec: SessionSpec) -> bool:
    """Return True if the elements of an input are integers."""
    return spec.elem_type in _INTEGERS


def unmakeable(spec: SessionSpec) -> str | None:
    """Return the reason why no value can be generated for an input, or None if one can be generated."""
    if spec.kind == "other":
        return f"input '{spec.name}' is {spec.declared}: pass it with inputs={{...}}"
    if spec.dims is None:
        return f"input '{spec.name}' has no declared rank: pass it with inputs={{...}}, or its shape with shapes={{...}}"
    if len(spec.dims) > _MOST_AXES:
        return f"input '{spec.name}' has {len(spec.dims)} axes, but numpy supports only {_MOST_AXES}"
    if spec.elem_type not in _MAKEABLE:
        return f"input '{spec.name}' is {spec.declared}, which cannot be passed to onnxruntime from Python"
    return None


def shape_of(spec: SessionSpec, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of a tensor input if the free dimensions have ``sizes``."""
    return tuple(dim if isinstance(dim, int) else sizes[dim] for dim in spec.dims or ())


def make_value(spec: SessionSpec, point: Point, role: Role | None, attempt: str, seed: int, named: Sequence[Known] = ()) -> Any:
    """Return a value for one input. The same arguments give the same value.

    Args:
        spec: the input.
        point: the case, with the sizes and the kind of values.
        role: the values that the input can have; None if that is unknown.
        attempt: the way to draw integers.
        seed: the seed of the values.
        named: values to put into every second element.

    Returns:
        An array, a list of arrays for a sequence, or None for an optional that is absent in this case.

    Raises:
        OptionError: no value can be generated for this input (see `unmakeable`), or the value would be too large.
    """
    reason = unmakeable(spec)
    if reason is not None:
        raise OptionError(reason)
    random = np.random.default_rng([seed, point.seed, zlib.crc32(spec.name.encode("utf-8", "surrogatepass"))])
    shape = shape_of(spec, point.sizes)
    if math.prod(shape) > _MOST_ELEMENTS:
        sizes = ", ".join(map(str, shape))
        raise OptionError(
            f"input '{spec.name}' would have the shape {sizes}, too large to generate: pass it with inputs={{...}}, "
            "or a smaller shape with shapes={...}."
        )

    def array(shape: tuple[int, ...]) -> np.ndarray:
        values = _make_array(spec, shape, point, role, attempt, random)
        if named:
            put_alternating(values, named, point.seed % 10)
        return values

    if spec.optional and point.kind == "absent":
        return None
    if spec.kind != "sequence":
        return array(shape)
    shapes = [shape] * _ITEMS.get(point.kind, _USUAL_ITEMS[point.seed % len(_USUAL_ITEMS)])
    if point.kind == "ragged":
        free = next((axis for axis, dim in enumerate(spec.dims or ()) if isinstance(dim, str)), -1)
        shapes = [tuple(size + more * (axis == free) for axis, size in enumerate(shape)) for more in range(len(shapes))]
    return [array(shape) for shape in shapes]


def _make_array(
    spec: SessionSpec, shape: tuple[int, ...], point: Point, role: Role | None, attempt: str, random: np.random.Generator
) -> np.ndarray:
    dtype = numpy_type(spec.elem_type)
    if spec.name in point.trips:
        return np.full(shape, point.trips[spec.name]).astype(dtype)
    if spec.elem_type == onnx.TensorProto.STRING:
        return np.asarray(random.choice(np.array(WORDS, object), shape), object)
    if spec.elem_type == onnx.TensorProto.BOOL:
        return _booleans(shape, point, random)
    if is_integer(spec):
        return make_integers(dtype, shape, point, role, attempt, random)
    if role is None or (attempt == ATTEMPTS[0] and point.kind in FLOAT_KINDS and not role.is_strict):
        return np.asarray(_floats(shape, point.kind, random)).astype(dtype)
    whole = make_integers(np.dtype(np.float64), shape, point, role, attempt, random)
    with_fractions = attempt == ATTEMPTS[0] and point.seed % 2 == 1
    return np.asarray(whole + random.random(shape) if with_fractions else whole).astype(dtype)


def _booleans(shape: Sequence[int], point: Point, random: np.random.Generator) -> np.ndarray:
    if point.kind == "normal" and point.seed % 5 in _ONE_UNLIKE and math.prod(shape) > 1:
        values = np.full(shape, _ONE_UNLIKE[point.seed % 5])
        values.reshape(-1)[random.integers(values.size)] ^= True
        return values
    share = {"zeros": 0.0, "large": 1.0, "mixed": 0.2}.get(point.kind, 0.5)
    return np.asarray(random.random(shape) < share)


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
                values = np.where(random_booleans(shape, random), special, values)
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
