"""Puts the two sides of an elementwise operator on one footing: the same leading axes, the same feature axes."""

import numpy as np
import onnx_ir as ir

from rewrites.recurrences.cells.features import Features
from rewrites.recurrences.cells.polynomial import Polynomial
from rewrites.recurrences.cells.reading import Reading

__all__ = ["both_sides", "same_lead"]


def both_sides(reading: Reading, node: ir.Node) -> tuple[Features, Features] | None:
    """Return the two inputs of ``node`` as features of one shape, one of which varies at least; None where they are not known."""
    first, second = (reading.meaning(value) for value in node.inputs)
    if isinstance(first, Features) and isinstance(second, Features):
        return _aligned(first, second) if same_lead(first, second) else None
    if isinstance(first, Features) and isinstance(second, np.ndarray):
        return _with_constant(first, second)
    if isinstance(first, np.ndarray) and isinstance(second, Features):
        sides = _with_constant(second, first)
        return None if sides is None else (sides[1], sides[0])
    return None


def same_lead(one: Features, other: Features) -> bool:
    """Whether the leading axes are the same, but for axes of size 1 in front of the shorter."""
    short, long = sorted((one.dims, other.dims), key=len)
    extra = len(long) - len(short)
    pairs = zip(short, long[extra:], strict=True)
    return all(dim == 1 for dim in long[:extra]) and all(a is not None and a == b for a, b in pairs)


def _aligned(first: Features, second: Features) -> tuple[Features, Features] | None:
    if len(first.shape) != len(second.shape):
        return None
    shape = np.broadcast_shapes(first.shape, second.shape)
    return _broadcast(first, shape), _broadcast(second, shape)


def _broadcast(features: Features, shape: tuple[int, ...]) -> Features:
    return features if features.shape == shape else features.taken(np.broadcast_to(features.indexed(), shape))


def _with_constant(features: Features, array: np.ndarray) -> tuple[Features, Features] | None:
    if array.dtype.kind != "f":
        return None
    axes = len(features.shape)
    if array.ndim < axes:
        array = array.reshape((1,) * (axes - array.ndim) + array.shape)
    if any(size != 1 for size in array.shape[: array.ndim - axes]):
        return None
    extra = max(0, array.ndim - axes - features.lead)
    dims = (*(1,) * extra, *features.dims)
    array = array.reshape(array.shape[array.ndim - axes :])
    shape = np.broadcast_shapes(features.shape, array.shape)
    numbers = np.broadcast_to(array, shape).reshape(-1)
    wide = _broadcast(features, shape)
    constant = Features(dims, shape, (Polynomial.constant(numbers),))
    return Features(dims, shape, wide.runs), constant
