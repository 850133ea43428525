"""Puts the two sides of an elementwise operator on one footing: the same leading axes, the same feature axes."""

import numpy as np
import onnx_ir as ir

from rewrites.recurrences.features import Features
from rewrites.recurrences.interpretation import Interpretation
from rewrites.recurrences.polynomial import Polynomial

__all__ = ["both_sides"]


def both_sides(reading: Interpretation, node: ir.Node) -> tuple[Features, Features] | None:
    """Give the two inputs of ``node`` as features of one shape, at least one of which varies; None where that is not understood."""
    first, second = (reading.meaning(value) for value in node.inputs)
    if isinstance(first, Features) and isinstance(second, Features):
        return _aligned(first, second) if _same_lead(node, first, second) else None
    if isinstance(first, Features) and isinstance(second, np.ndarray):
        return _with_constant(first, second)
    if isinstance(first, np.ndarray) and isinstance(second, Features):
        sides = _with_constant(second, first)
        return None if sides is None else (sides[1], sides[0])
    return None


def _same_lead(node: ir.Node, first: Features, second: Features) -> bool:
    """Whether the leading axes are the same, but for axes of size 1 in front of the shorter."""
    dims = []
    for value, features in zip(node.inputs, (first, second), strict=True):
        if value is None or value.shape is None or len(value.shape) != features.lead + len(features.shape):
            return False
        dims.append([dim if isinstance(dim, int) else dim.value for dim in value.shape.dims[: features.lead]])
    short, long = sorted(dims, key=len)
    extra = len(long) - len(short)
    return all(dim == 1 for dim in long[:extra]) and all(
        one is not None and one == other for one, other in zip(short, long[extra:], strict=True)
    )


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
    lead = max(features.lead, array.ndim - axes)
    array = array.reshape(array.shape[array.ndim - axes :])
    shape = np.broadcast_shapes(features.shape, array.shape)
    numbers = np.broadcast_to(array, shape).reshape(-1)
    wide = _broadcast(features, shape)
    constant = Features(lead, shape, (Polynomial.constant(numbers),))
    return Features(lead, shape, wide.runs), constant
