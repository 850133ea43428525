"""Recognises operators that replace one row of a tensor.

    ScatterND(t, [[i]], [y])      ScatterND(t, all indices of row i, y)      ScatterElements(t, [[i, i, …]], [y])
    Where(numbers == i, [y], t)   Concat(t[:i], [y], t[i + 1:])

A Scatter may also add the new row to the old row, or multiply both. The old row is then the initial row, because each row is
written once.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import STEP, AffineExpression
from rewrites.analysis.induction.integers import Integers
from rewrites.graph.builder import Builder
from rewrites.graph.dims import same, without_axis
from rewrites.graph.values import dim_of, producer_of, rank_of, static_dims
from rewrites.loops import State
from rewrites.ops.versions import axis_of, reshape, squeeze

__all__ = ["RowTensor", "RowWrite", "match_operator"]


@dataclass(frozen=True)
class RowWrite:
    """A node that replaces one row of a tensor.

    Args:
        node: The node.
        axis: The axis of the tensor along which rows are counted.
        index: The index of the row, as an expression of the step number.
        emit_row: Emits the new row, without ``axis``.
        helper_nodes: Other nodes that only this write needs.
    """

    node: ir.Node
    axis: int
    index: AffineExpression
    emit_row: Callable[[Builder], ir.Value]
    helper_nodes: tuple[ir.Node, ...] = ()


@dataclass(frozen=True)
class RowTensor:
    """A tensor in the body of which a row is written: a state, or a Transpose of a state by ``perm``."""

    value: ir.Value
    state: State
    perm: Sequence[int] | None = None

    @property
    def initial(self) -> ir.Value | None:
        """Return the value of the tensor before the first step; None if no value in the graph equals it."""
        return self.state.initial if self.perm is None else None

    def length(self, axis: int, integers: Integers) -> AffineExpression | None:
        """Return the size along ``axis``, which no write changes; None if it is unknown."""
        return integers.size_of(self.state.initial, axis if self.perm is None else self.perm[axis])


def match_operator(node: ir.Node, tensor: RowTensor, integers: Integers) -> RowWrite | None:
    """Return ``node`` as a RowWrite if its operator replaces one row of ``tensor``, else None."""
    reader = _READERS.get(node.op_type) if node.domain == "" else None
    return reader(node, tensor, integers) if reader is not None else None


def _emit_updates(b: Builder, node: ir.Node, initial: ir.Value | None) -> ir.Value:
    """Return the rows that the Scatter ``node`` writes: with a reduction, combined with ``initial``."""
    operator, updates = _REDUCTIONS[node.attributes.get_string("reduction", "none")], node.inputs[2]
    assert updates is not None
    if operator is None:
        return updates
    if node.op_type == "ScatterND":
        return b.op(operator, b.op("GatherND", initial, node.inputs[1]), updates)
    return b.op(operator, b.op("GatherElements", initial, node.inputs[1], axis=node.attributes.get_int("axis", 0)), updates)


def _can_emit_updates(node: ir.Node, written: RowTensor) -> bool:
    """Return True if the reduction of the Scatter ``node`` is supported."""
    reduction = node.attributes.get_string("reduction", "none")
    return reduction == "none" or (reduction in _REDUCTIONS and written.initial is not None)


def _scatter_nd(node: ir.Node, written: RowTensor, integers: Integers) -> RowWrite | None:
    """Return the ScatterND ``node`` as a RowWrite, if its indices are those of one row."""
    tensor = written.value
    if node.inputs[0] is not tensor or not _can_emit_updates(node, written):
        return None
    indices, updates = integers.operand(node, 1), partial(_emit_updates, node=node, initial=written.initial)
    dims = None if tensor.shape is None else list(tensor.shape.dims)
    if indices is None or dims is None or not indices.const.ndim or not indices.const.size:
        return None
    depth = indices.shape[-1]
    flat = indices.reshaped((-1, depth))
    moving = [k for k in range(depth) if STEP in flat.terms and flat.terms[STEP][:, k].any()]
    if len(moving) != 1:
        return None
    (axis,) = moving
    other_dims = [dims[k] for k in range(depth) if k != axis]
    sizes = [dim for dim in other_dims if isinstance(dim, int)]
    if len(sizes) < len(other_dims) or flat.shape[0] != int(np.prod(sizes, dtype=np.int64)):
        return None
    index = flat.rearranged(lambda array: array[:, axis]).uniform
    if index is None or not _lists_all_indices(flat, axis, sizes):
        return None
    leading, rest = indices.const.ndim - 1, dims[depth:]
    if all(size == 1 for size in indices.shape[:-1]) and not other_dims:
        return RowWrite(node, axis, index, lambda b: squeeze(b, updates(b), list(range(leading))))
    row_dims = [*sizes, *(dim for dim in rest if isinstance(dim, int))]
    if len(row_dims) < len(sizes) + len(rest) or 0 in row_dims:
        return None
    return RowWrite(node, axis, index, lambda b: reshape(b, updates(b), row_dims))


def _lists_all_indices(indices: AffineExpression, axis: int, sizes: list[int]) -> bool:
    """Return True if ``indices`` lists, in order, all indices of the axes other than ``axis``.

    ``sizes``: the sizes of these axes.
    """
    if not sizes:
        return True
    other_indices = indices.rearranged(lambda array: np.delete(array, axis, 1)).numbers
    all_indices = np.stack(np.unravel_index(np.arange(indices.shape[0]), sizes), 1)
    return other_indices is not None and bool((other_indices == all_indices).all())


def _scatter_elements(node: ir.Node, written: RowTensor, integers: Integers) -> RowWrite | None:
    """Return the ScatterElements ``node`` as a RowWrite, if all its indices are equal."""
    tensor = written.value
    if node.inputs[0] is not tensor or not _can_emit_updates(node, written):
        return None
    indices, rank = integers.operand(node, 1), rank_of(tensor)
    if indices is None or not rank:
        return None
    axis = axis_of(node, 0, rank)
    index = indices.uniform
    if tensor.shape is None or index is None or len(indices.shape) != rank or indices.shape[axis] != 1:
        return None
    if any(k != axis and indices.shape[k] != tensor.shape[k] for k in range(rank)):
        return None
    return RowWrite(node, axis, index, lambda b: squeeze(b, _emit_updates(b, node, written.initial), [axis]))


def _where(node: ir.Node, written: RowTensor, integers: Integers) -> RowWrite | None:
    """Return the Where ``node`` as a RowWrite, if its condition selects one row."""
    (condition, on_true, on_false), tensor = node.inputs, written.value
    if condition is None or on_true is None or on_false is not tensor:
        return None
    moved = producer_of(condition, "Reshape", "Unsqueeze")
    equal = producer_of(condition if moved is None else moved.inputs[0], "Equal")
    if equal is None:
        return None
    left, right = integers.operand(equal, 0), integers.operand(equal, 1)
    rank = rank_of(tensor)
    if left is None or right is None or rank is None:
        return None
    gap, dims = left - right, static_dims(condition)
    if moved is not None:
        if dims is None or gap.const.size != math.prod(dims):
            return None
        gap = gap.reshaped(tuple(dims))
    gap = gap.reshaped((1,) * (rank - gap.const.ndim) + gap.shape) if gap.const.ndim <= rank else gap
    wide = [k for k in range(gap.const.ndim) if gap.shape[k] != 1]
    if gap.const.ndim != rank or len(wide) != 1 or not gap.const.size or gap.shape[wide[0]] != dim_of(tensor, wide[0]):
        return None
    (axis,) = wide
    row = gap.reshaped((-1,))
    sign = 1 if int(row.const[1] - row.const[0]) == 1 else -1
    index = (AffineExpression.of(np.arange(row.const.size)) - row * sign).uniform
    new, whole = on_true.shape, tensor.shape
    # the new row must be the same at every index of the axis, and have all other sizes
    if index is None or new is None or whole is None or len(new) not in (rank, rank - 1 if axis == 0 else rank):
        return None
    full = len(new) == rank
    if not same(without_axis(new, axis) if full else new, without_axis(whole, axis)) or (full and new[axis] != 1):
        return None
    return RowWrite(node, axis, index, lambda b: squeeze(b, on_true, [axis]) if full else on_true, (equal,))


def _concat(node: ir.Node, written: RowTensor, integers: Integers) -> RowWrite | None:
    """Return the Concat ``node`` as a RowWrite, if it joins the rows before, a new row and the rows after."""
    tensor = written.value
    rank = rank_of(tensor)
    if len(node.inputs) != 3 or not rank:
        return None
    axis = axis_of(node, 0, rank)
    before, row, after = node.inputs
    length = written.length(axis, integers)
    first, last = _slice_bounds(before, tensor, axis, integers), _slice_bounds(after, tensor, axis, integers)
    if row is None or first is None or last is None or dim_of(row, axis) != 1 or length is None:
        return None
    (start, index, head), (tail_start, end, tail) = first, last
    gap = tail_start - index - 1
    to_the_end = end.number is not None and end.number >= (1 << 31) - 1
    rest = end - length
    if start.number != 0 or gap.number != 0 or not (to_the_end or rest.number == 0):
        return None
    return RowWrite(node, axis, index, lambda b: squeeze(b, row, [axis]), (head, tail))


def _slice_bounds(
    value: ir.Value | None, tensor: ir.Value, axis: int, integers: Integers
) -> tuple[AffineExpression, AffineExpression, ir.Node] | None:
    """Return (start, end, Slice) if ``value`` is a Slice of ``tensor`` along ``axis`` that is read once."""
    node = producer_of(value, "Slice")
    if node is None or node.inputs[0] is not tensor or len(node.inputs) < 4:
        return None
    bounds = integers.bounds(node)
    if bounds is None or [bound.axis for bound in bounds] != [axis] or len(node.outputs[0].uses()) != 1:
        return None
    return bounds[0].start, bounds[0].end, node


_REDUCTIONS = {"none": None, "add": "Add", "mul": "Mul"}
"""The operator of each supported reduction of a Scatter."""
_READERS: dict[str, Callable[[ir.Node, RowTensor, Integers], RowWrite | None]] = {
    "Concat": _concat,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Where": _where,
}
