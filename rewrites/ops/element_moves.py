"""Describes operators that only move elements, by functions on numpy arrays.

    Split([B, 4], [1, 3], axis=1): axes = (0, 1), changed_axes = {1}, apply = x  ->  x[:, :1], x[:, 1:]

An analysis applies such a function to an array of its own: the elements of a constant, the factors of affine expressions, or the
indices of features.
"""

import math
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.ops.versions import DYNAMIC, axes_of, axis_of, perm_of, slice_range, slice_spec, split_spec, zero_copies_size

__all__ = ["Movement", "movement"]

Size = int | str | None
ElementsOf = Callable[[int], np.ndarray | None]

_END = 2**31 - 1
"""The smallest ``end`` that exporters write to slice up to the end of an axis."""


@dataclass(frozen=True)
class Movement:
    """Describes how an operator moves elements.

    Args:
        axes: For each axis of a result, the corresponding axis of the first input, or None for a new axis of size 1. ``axes``
            itself is None if axes are merged or split.
        changed_axes: The axes of the first input along which elements are dropped, reordered, repeated or joined.
        apply: Computes the results from one array for each moved input: all inputs of a Concat, otherwise the first input.
    """

    axes: tuple[int | None, ...] | None
    changed_axes: Set[int]
    apply: Callable[[Sequence[np.ndarray]], list[np.ndarray]]


def movement(node: ir.Node, opset: int, dims: Sequence[Size], elements_of: ElementsOf) -> Movement | None:
    """Return how ``node`` moves elements, or None if it also computes or if an operand is unknown.

    Args:
        node: The node.
        opset: The opset of its graph.
        dims: The sizes of the first input.
        elements_of: Takes the index of an input. Returns the elements of this input, or None if they are unknown.
    """
    describe = _MOVEMENTS.get(node.op_type) if node.domain == "" else None
    return None if describe is None else describe(node, opset, dims, elements_of)


def _concat(node: ir.Node, opset: int, dims: Sequence[Size], elements_of: ElementsOf) -> Movement | None:
    axis = axis_of(node, 0, len(dims))
    return _moving_along(axis, dims, lambda arrays: [np.concatenate(arrays, axis)])


def _expand(node: ir.Node, opset: int, dims: Sequence[Size], elements_of: ElementsOf) -> Movement | None:
    shape = _int_tuple(elements_of(1))
    if shape is None or any(not isinstance(dim, int) for dim in dims):
        return None
    try:
        result_dims = np.broadcast_shapes(tuple(int(dim) for dim in dims if dim is not None), shape)
    except ValueError:
        return None
    added = len(result_dims) - len(dims)
    axes = (*[None] * added, *range(len(dims)))
    changed_axes = {axis for axis, dim in enumerate(dims) if result_dims[added + axis] != dim}

    def apply(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        sizes = [result_dims[added + axis] if axis in changed_axes else size for axis, size in enumerate(arrays[0].shape)]
        return [np.broadcast_to(arrays[0], (*result_dims[:added], *sizes))]

    return Movement(axes if all(size == 1 for size in result_dims[:added]) else None, changed_axes, apply)


def _gather(node: ir.Node, opset: int, dims: Sequence[Size], elements_of: ElementsOf) -> Movement | None:
    index, axis = elements_of(1), axis_of(node, 0, len(dims))
    size = dims[axis] if 0 <= axis < len(dims) else None
    if index is None or not isinstance(size, int) or not ((-size <= index) & (index < size)).all():
        return None
    axes = (*range(axis), *[axis] * index.ndim, *range(axis + 1, len(dims)))
    return Movement(axes, {axis}, lambda x: [np.take(x[0], index, axis)])


def _identity(node: ir.Node, opset: int, dims: Sequence[Size], elements_of: ElementsOf) -> Movement | None:
    return Movement(tuple(range(len(dims))), frozenset(), list)


def _reshape(node: ir.Node, opset: int, dims: Sequence[Size], elements_of: ElementsOf) -> Movement | None:
    sizes, copies = _int_tuple(elements_of(1)), zero_copies_size(node)
    if sizes is None or any(not isinstance(dim, int) for dim in dims):
        return None
    if any(size < -1 or (size == 0 and copies and i >= len(dims)) for i, size in enumerate(sizes)) or sizes.count(-1) > 1:
        return None
    count = math.prod(int(dim) for dim in dims if dim is not None)
    target = [int(dims[i] or 0) if size == 0 and copies else size for i, size in enumerate(sizes)]
    known_count = math.prod(size for size in target if size != -1)
    if count != known_count if -1 not in target else known_count == 0 or count % known_count:
        return None
    return Movement(None, frozenset(range(len(dims))), lambda x: [np.reshape(x[0], target)])


def _slice(node: ir.Node, opset: int, dims: Sequence[Size], elements_of: ElementsOf) -> Movement | None:
    spec = slice_spec(node, opset, len(dims))
    if spec is DYNAMIC:
        return None
    cuts: dict[int, range] = {}
    for start, end, axis, step in zip(spec.starts, spec.ends, spec.axes, spec.steps, strict=True):
        if not 0 <= axis < len(dims) or not step or axis in cuts:
            return None
        size = dims[axis]
        if step == 1 and start == 0 and end >= (size if isinstance(size, int) else _END):
            continue
        if not isinstance(size, int):
            return None
        cuts[axis] = slice_range(start, end, step, size)

    def apply(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        (result,) = arrays
        for axis, indices in cuts.items():
            result = np.take(result, np.array(indices, np.int64), axis)
        return [result]

    return Movement(tuple(range(len(dims))), cuts.keys(), apply)


def _split(node: ir.Node, opset: int, dims: Sequence[Size], elements_of: ElementsOf) -> Movement | None:
    spec = split_spec(node, opset, len(dims))
    size = dims[spec.axis] if 0 <= spec.axis < len(dims) else None
    sizes = spec.sizes_of(size) if isinstance(size, int) else None
    if sizes is None or sum(sizes) != size or min(sizes) < 0 or len(sizes) != spec.outputs:
        return None
    return _moving_along(spec.axis, dims, lambda x: np.split(x[0], np.cumsum(sizes)[:-1], spec.axis))


def _squeeze(node: ir.Node, opset: int, dims: Sequence[Size], elements_of: ElementsOf) -> Movement | None:
    axes = axes_of(node, opset, len(dims))
    if axes is DYNAMIC or (axes is None and not all(isinstance(dim, int) for dim in dims)):
        return None
    removed = {axis for axis, dim in enumerate(dims) if dim == 1} if axes is None else set(axes)
    if any(not 0 <= axis < len(dims) or (isinstance(dims[axis], int) and dims[axis] != 1) for axis in removed):
        return None
    remaining = tuple(axis for axis in range(len(dims)) if axis not in removed)
    return Movement(remaining, frozenset(), lambda x: [np.squeeze(x[0], tuple(removed))])


def _transpose(node: ir.Node, opset: int, dims: Sequence[Size], elements_of: ElementsOf) -> Movement | None:
    perm = perm_of(node, len(dims))
    if sorted(perm) != list(range(len(dims))):
        return None
    return Movement(perm, frozenset(), lambda x: [np.transpose(x[0], perm)])


def _unsqueeze(node: ir.Node, opset: int, dims: Sequence[Size], elements_of: ElementsOf) -> Movement | None:
    new = axes_of(node, opset, len(dims))
    if new is DYNAMIC or new is None:
        return None
    rank = len(dims) + len(new)
    if len(set(new)) < len(new) or any(not 0 <= axis < rank for axis in new):
        return None
    old = iter(range(len(dims)))
    axes = tuple(None if axis in new else next(old) for axis in range(rank))
    return Movement(axes, frozenset(), lambda x: [np.expand_dims(x[0], tuple(new))])


def _moving_along(axis: int, dims: Sequence[Size], apply: Callable[[Sequence[np.ndarray]], list[np.ndarray]]) -> Movement | None:
    """Return a Movement that keeps all axes and moves elements only along ``axis``; None for a wrong axis."""
    return Movement(tuple(range(len(dims))), {axis}, apply) if 0 <= axis < len(dims) else None


def _int_tuple(array: np.ndarray | None) -> tuple[int, ...] | None:
    """Return ``array`` as a tuple if it is a scalar or vector of integers, else None."""
    return None if array is None or array.dtype.kind not in "iu" or array.ndim > 1 else tuple(array.reshape(-1).tolist())


_MOVEMENTS: dict[str, Callable[[ir.Node, int, Sequence[Size], ElementsOf], Movement | None]] = {
    "Concat": _concat,
    "Expand": _expand,
    "Gather": _gather,
    "Identity": _identity,
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
