"""Find the sequence lengths behind a mask.

    Less(Range(0, T, 1) [T, 1], lengths [1, B])    ->    rows take the steps 0 to lengths - 1

With such a mask, a native node takes the lengths directly, and its steps need not be sorted. Between the comparison and the mask,
there may be Unsqueeze, Squeeze, Transpose and Identity nodes, and a Slice that keeps the first steps. The comparison may also be a
Greater with swapped operands.
"""

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_array, const_scalar, producer_of, rank_of
from rewrites.ops.versions import axes_of, ints_operand, perm_of

__all__ = ["lengths_behind"]

_INTEGERS = frozenset({ir.DataType.INT32, ir.DataType.INT64})
_MOVES = ("Identity", "Slice", "Squeeze", "Transpose", "Unsqueeze")


def lengths_behind(mask: ir.Value, opset: int) -> ir.Value | None:
    """Return the lengths if ``mask`` is the comparison of step numbers with lengths, else None.

    ``mask`` is a bool tensor [steps, rows, 1]. For a row of length n, it is True in the steps 0 to n - 1 only. The lengths are
    integers of the shape [rows, 1], [1, rows] or [1, 1]. They may be negative, or larger than the number of steps. ``opset``: at
    least 11.
    """
    axis: int | None = 0
    value = mask
    while axis is not None and (node := producer_of(value, *_MOVES)) is not None and node.inputs[0] is not None:
        value, axis = node.inputs[0], _axis_before(node, axis, opset)
    node = producer_of(value, "Less", "Greater")
    if node is None or axis is None or rank_of(value) != 2:
        return None
    step, length = node.inputs if node.op_type == "Less" else reversed(node.inputs)
    if step is None or length is None or length.shape is None or rank_of(step) != 2 or rank_of(length) != 2:
        return None
    if length.dtype not in _INTEGERS:
        return None
    return length if length.shape[axis] == 1 and step.shape is not None and step.shape[1 - axis] == 1 and _counts(step) else None


def _axis_before(node: ir.Node, axis: int, opset: int) -> int | None:
    """Return the axis of the input of ``node`` that becomes ``axis``, the axis of steps, of its output.

    Return None if the axis is unknown. Also return None if ``node`` is a Slice, unless it keeps a number of steps from step 0 on.
    """
    source = node.inputs[0]
    rank = None if source is None else rank_of(source)
    if node.op_type == "Identity":
        return axis
    if rank is None:
        return None
    if node.op_type == "Transpose":
        return perm_of(node, rank)[axis]
    if node.op_type == "Slice":
        starts, axes, steps = (ints_operand(node, index) for index in (1, 3, 4))
        is_first = starts == (0,) and axes in ((axis,), (axis - rank,)) and steps in (None, (1,))
        return axis if is_first else None
    axes = axes_of(node, opset, rank)
    if not isinstance(axes, tuple):
        return None
    if node.op_type == "Unsqueeze":
        return None if axis in axes else axis - sum(other < axis for other in axes)
    return [kept for kept in range(rank) if kept not in axes][axis]


def _counts(step: ir.Value) -> bool:
    """Return True if the elements of ``step`` are 0, 1, 2, …"""
    value: ir.Value | None = step
    while (node := producer_of(value, "Cast", "Identity", "Squeeze", "Unsqueeze")) is not None:
        value = node.inputs[0]
        if value is None or (node.op_type == "Cast" and value.dtype not in _INTEGERS):
            return False
    node = producer_of(value, "Range")
    if node is not None:
        return const_scalar(node.inputs[0]) == 0 and const_scalar(node.inputs[2]) == 1
    array = const_array(value)
    return array is not None and array.dtype.kind == "i" and np.array_equal(array.ravel(), np.arange(array.size))
