"""Adapts axes and operands to an extra axis 0, the axis of the steps.

It shifts axes, inserts axes for broadcasting, and repeats values for every step.

Works around ORT-NEGATIVE-AXIS-OF-NOTHING.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.batching.call import Call, Operand
from rewrites.graph.builder import Builder
from rewrites.ops.versions import DYNAMIC, axis_of, gather, ints_operand, unsqueeze

__all__ = [
    "after_steps",
    "aligned_operands",
    "axes_after_steps",
    "axis_after_steps",
    "stacked_operand",
    "stacked_value",
    "with_rank",
    "with_unit_axes",
]

_NO_EXPAND_KERNEL = frozenset(
    {ir.DataType.BFLOAT16, ir.DataType.FLOAT8E4M3FN, ir.DataType.FLOAT8E4M3FNUZ, ir.DataType.FLOAT8E5M2, ir.DataType.FLOAT8E5M2FNUZ}
)


def after_steps(axis: int) -> int:
    """Convert ``axis`` of a single step's value to the axis of the batched value.

    The steps are axis 0, so a non-negative axis grows by one. A negative axis counts from the end and is unchanged.
    """
    return axis if axis < 0 else axis + 1


def axis_after_steps(call: Call, default: int, index: int = 0) -> int:
    """Return the ``axis`` attribute of the node, shifted past axis 0 of a batched value (the steps).

    If the rank of operand ``index`` is known, the result is non-negative: for some negative axes, onnxruntime infers wrong shapes
    when the number of steps is 0.

    Args:
        call: The call.
        default: The value of ``axis`` if the node does not have this attribute.
        index: The operand to which the axis belongs.
    """
    operand = call.optional_operand(index)
    return after_steps(axis_of(call.node, default, None if operand is None else operand.rank))


def axes_after_steps(call: Call, index: int, rank: int | None = None) -> ir.Value:
    """Return a tensor of axes, operand ``index``, with each axis shifted past axis 0 (the steps).

    ``rank``: the per-step rank of the tensor that the axes index, if known. If it is known, the shifted axes are non-negative.
    """
    operand, b = call.operand(index), call.build
    dtype = np.int32 if operand.inner.dtype == ir.DataType.INT32 else np.int64
    known = ints_operand(call.node, index)
    if known is not DYNAMIC and known is not None:
        axes = [axis if axis >= 0 or rank is None else axis + rank for axis in known]
        shape = () if operand.rank == 0 else (len(axes),)
        return b.const(np.array([after_steps(axis) for axis in axes], dtype=dtype).reshape(shape))
    numbers = operand.value
    zero, unit = b.const(np.array(0, dtype)), b.const(np.array(1, dtype))
    from_end = numbers if rank is None else b.op("Add", numbers, b.const(np.array(rank + 1, dtype)))
    return b.op("Where", b.op("Less", numbers, zero), from_end, b.op("Add", numbers, unit))


def with_unit_axes(call: Call, operand: Operand, rank: int, first_axis: int) -> ir.Value:
    """Insert axes of size 1 into ``operand`` so that it broadcasts with the data of the node.

    Args:
        call: The call.
        operand: The operand, such as a bias.
        rank: The rank of the data in one step.
        first_axis: The axis of the data, in one step, that corresponds to axis 0 of ``operand`` in one step.
    """
    if operand.rank is None:
        raise call.refuse("RANK-UNKNOWN", f"the rank of {operand.inner.name!r} is not known")
    after = first_axis + operand.rank
    if not operand.batched:
        return unsqueeze(call.build, operand.value, range(operand.rank, operand.rank + rank - after))
    return unsqueeze(call.build, operand.value, [*range(1, 1 + first_axis), *range(1 + after, 1 + rank)])


def with_rank(call: Call, operand: Operand, rank: int) -> ir.Value:
    """Insert axes of size 1 into a batched ``operand`` so that it has ``rank`` axes per step.

    The new axes follow axis 0 (the steps). So each step broadcasts as before. A loop-invariant operand is returned unchanged.
    """
    if not operand.batched or operand.rank is None:
        return operand.value
    return unsqueeze(call.build, operand.value, range(1, 1 + rank - operand.rank))


def aligned_operands(call: Call, indices: Sequence[int] | None = None) -> list[ir.Value | None]:
    """Return the values of the operands at ``indices`` (default: all), aligned for broadcasting.

    Axes of size 1 are inserted so that the values broadcast as in one step. Loop-invariant operands need no new axes, because
    broadcasting aligns the last axes. All ranks must be known if a batched operand may have fewer axes than another operand.
    """
    places = range(len(call.operands)) if indices is None else indices
    operands = {index: operand for index in places if (operand := call.optional_operand(index)) is not None}
    varying = {id(operand.inner) for operand in operands.values() if operand.batched}
    if len(varying) <= 1 and all(operand.batched or operand.rank == 0 for operand in operands.values()):
        return [call.value(index) for index in places]
    rank = max(call.rank(index) for index in operands)
    return [with_rank(call, operands[index], rank) if index in operands else None for index in places]


def stacked_operand(call: Call, index: int) -> ir.Value:
    """Return the value of operand ``index`` with the steps as axis 0.

    A loop-invariant operand is repeated for every step.
    """
    return stacked_value(call.build, call.operand(index), call.steps)


def stacked_value(b: Builder, operand: Operand, steps: ir.Value) -> ir.Value:
    """Return ``operand`` with the steps as axis 0. A loop-invariant operand is repeated for every step."""
    if operand.batched:
        return operand.value
    if operand.inner.dtype in _NO_EXPAND_KERNEL:
        first = b.op("ConstantOfShape", steps, value=ir.tensor(np.zeros(1, dtype=np.int64)))
        return gather(b, unsqueeze(b, operand.value, [0]), first, axis=0)
    tail = b.op("Shape", operand.value) if operand.rank is None else b.const([1] * operand.rank) if operand.rank else None
    shape = steps if tail is None else b.op("Concat", steps, tail, axis=0)
    return b.op("Expand", operand.value, shape)
