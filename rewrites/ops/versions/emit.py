"""Emits operators in the opset of the builder, which may be 8 to 28.

The emitted nodes also work for types for which onnxruntime has no kernel of the operator.

Works around ORT-SHARED-MEMORY, ONNX-SLICE-10-NAMES, ORT-WHERE-TYPES and ORT-GATHER-AT-RANGE.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.builder import Builder
from rewrites.graph.values import const_array, dim_of
from rewrites.ops.versions.attributes import axes_are_input

__all__ = [
    "checked_lengths",
    "concat",
    "count_up",
    "gather",
    "move_axis_first",
    "move_first_axis",
    "reduce",
    "reshape",
    "reversed_if",
    "shape_of",
    "slice_axis",
    "split",
    "squeeze",
    "transpose",
    "unsqueeze",
    "where",
]


_END = 2**63 - 1


def unsqueeze(b: Builder, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Insert axes of size 1. ``axes`` are their indices in the result."""
    return _with_axes(b, "Unsqueeze", x, axes) if axes else x


def squeeze(b: Builder, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Remove ``axes``, each of size 1."""
    return _with_axes(b, "Squeeze", x, axes) if axes else x


def reduce(b: Builder, op_type: str, x: ir.Value, axes: Sequence[int], keepdims: bool) -> ir.Value:
    """Reduce ``x`` over ``axes`` (at least one) with ``op_type``, a Reduce* operator."""
    if not axes:
        raise ValueError(f"{op_type} over no axes cannot be written in all opsets")
    return _with_axes(b, op_type, x, axes, keepdims=int(keepdims))


def slice_axis(b: Builder, x: ir.Value, axis: int, start: int, end: int, step: int = 1) -> ir.Value:
    """Return ``x[start:end:step]`` along ``axis``. Before opset 10, ``step`` must be 1.

    ``start`` and ``end`` have the same meaning as in a Slice.
    """
    if b.opset < 10:
        if step != 1:
            raise ValueError(f"Slice has no steps in opset {b.opset}")
        return b.op("Slice", x, axes=[axis], starts=[start], ends=[end])
    steps = None if step == 1 else b.const([step])
    return b.op("Slice", x, b.const([start]), _slice_end(b, x, axis, end, step), b.const([axis]), steps)


def reversed_if(b: Builder, rows: ir.Value, is_backwards: bool) -> ir.Value:
    """Return ``rows``, reversed along axis 0 if ``is_backwards``."""
    return slice_axis(b, rows, 0, -1, -_END, -1) if is_backwards else rows


def _slice_end(b: Builder, x: ir.Value, axis: int, end: int, step: int) -> ir.Value:
    """Return ``end`` as the operand of a Slice.

    In opset 10, compute it at run time if the size of the axis is unknown. If it were constant, shape inference would keep the name
    of the size before the Slice. onnxruntime would then treat both sizes as equal and share a buffer of the wrong size.
    """
    if b.opset != 10 or step != 1 or isinstance(dim_of(x, axis), int):
        return b.const([end])
    length = b.op("Slice", b.op("Shape", x), b.const([axis]), b.const([axis + 1]), b.const([0]))
    return b.op("Add", b.op("Sub", length, length), b.const([end]))


def split(b: Builder, x: ir.Value, axis: int, sizes: Sequence[int] | None, outputs: int) -> tuple[ir.Value, ...]:
    """Split ``x`` along ``axis`` into ``outputs`` parts of ``sizes``; None means equal sizes."""
    if b.opset >= 18:
        operands = [x] if sizes is None else [x, b.const(list(sizes))]
        return b.ops("Split", operands, outputs, axis=axis, num_outputs=outputs if sizes is None else None)
    if b.opset >= 13:
        return b.ops("Split", [x] if sizes is None else [x, b.const(list(sizes))], outputs, axis=axis)
    return b.ops("Split", [x], outputs, axis=axis, split=None if sizes is None else list(sizes))


def transpose(b: Builder, x: ir.Value, perm: Sequence[int]) -> ir.Value:
    """Permute the axes of ``x``. If the permutation changes nothing, return ``x``."""
    return x if list(perm) == list(range(len(perm))) else b.op("Transpose", x, perm=list(perm))


def move_first_axis(b: Builder, x: ir.Value, axis: int, rank: int) -> ir.Value:
    """Move axis 0 of ``x``, which has ``rank`` axes, to ``axis``."""
    return transpose(b, x, [*range(1, axis + 1), 0, *range(axis + 1, rank)])


def move_axis_first(b: Builder, x: ir.Value, axis: int, rank: int) -> ir.Value:
    """Move ``axis`` of ``x``, which has ``rank`` axes, to axis 0."""
    return transpose(b, x, [axis, *(position for position in range(rank) if position != axis)])


def reshape(b: Builder, x: ir.Value, shape: Sequence[int]) -> ir.Value:
    """Reshape ``x``. In ``shape``, a 0 copies the dimension of the same index, and a -1 is inferred."""
    return b.op("Reshape", x, b.const(list(shape)))


def concat(b: Builder, values: Sequence[ir.Value], axis: int) -> ir.Value:
    """Concatenate ``values`` along ``axis``. If there is only one value, return it."""
    return values[0] if len(values) == 1 else b.op("Concat", *values, axis=axis)


def gather(b: Builder, x: ir.Value, indices: ir.Value, axis: int) -> ir.Value:
    """Take the elements of ``x`` at ``indices`` along ``axis``."""
    return b.op("Gather", x, indices, axis=axis)


def shape_of(b: Builder, x: ir.Value, axis: int) -> ir.Value:
    """Return the size of ``x`` along ``axis`` as an int64 vector of one element, constant if known.

    ``axis`` may be negative.
    """
    dim = dim_of(x, axis)
    if isinstance(dim, int):
        return b.const([dim])
    if b.opset >= since.SHAPE_RANGE:
        return b.op("Shape", x, start=axis, end=None if axis == -1 else axis + 1)
    return slice_axis(b, b.op("Shape", x), 0, axis, _END if axis == -1 else axis + 1)


def _with_axes(b: Builder, op_type: str, x: ir.Value, axes: Sequence[int], keepdims: int | None = None) -> ir.Value:
    """Emit an operator whose axes are an attribute or an input, depending on the opset."""
    if axes_are_input(op_type, b.opset):
        return b.op(op_type, x, b.const(list(axes)), keepdims=keepdims)
    return b.op(op_type, x, axes=list(axes), keepdims=keepdims)


_BY_WAY_OF = {
    ir.DataType.FLOAT16: ir.DataType.FLOAT,
    ir.DataType.BFLOAT16: ir.DataType.FLOAT,
    ir.DataType.INT16: ir.DataType.INT32,
    ir.DataType.UINT16: ir.DataType.INT32,
    ir.DataType.UINT64: ir.DataType.INT64,
}
"""For each type without a kernel, a type to which it can be cast and back without loss."""


def where(b: Builder, condition: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return ``x`` where ``condition`` is true, else ``y``, with broadcasting.

    ``x`` and ``y`` must have the same type.
    """
    if x.dtype == ir.DataType.BOOL:
        return b.op("Or", b.op("And", condition, x), b.op("And", b.op("Not", condition), y))
    wider = None if x.dtype is None else _BY_WAY_OF.get(x.dtype)
    if wider is None or x.dtype is None:
        return b.op("Where", condition, x, y)
    chosen = b.op("Where", condition, b.op("Cast", x, to=int(wider)), b.op("Cast", y, to=int(wider)))
    return b.op("Cast", chosen, to=int(x.dtype))


_CONSTANT_UP_TO = 1 << 13


def count_up(b: Builder, length: ir.Value, *, as_indices: bool = False) -> ir.Value:
    """Return the int64 vector 0, 1, … ``length`` - 1. ``length`` is a one-element int64 tensor.

    ``as_indices``: True if a Gather uses the vector as its indices, and must fail if an index is out of range. Then no Range is
    emitted, because onnxruntime turns a Gather at a Range into a Slice, which never fails.
    """
    known = const_array(length)
    if known is not None and known.item() <= _CONSTANT_UP_TO:
        return b.const(np.arange(known.item(), dtype=np.int64))
    if b.opset >= since.RANGE and not as_indices:
        zero, unit = b.const(np.array(0, np.int64)), b.const(np.array(1, np.int64))
        return b.op("Range", zero, squeeze(b, length, [0]), unit)
    ones = b.op("ConstantOfShape", length, value=ir.tensor(np.ones(1, np.int64)))
    return squeeze(b, b.op("NonZero", ones), [0])


def checked_lengths(b: Builder, lengths: ir.Value, steps: ir.Value) -> ir.Value:
    """Return the int64 ``lengths`` after a check: a Gather fails if one of them is not in 0..T.

    ``steps``: T, as an int64 tensor of one element.
    """
    after = b.op("Add", steps, b.const([1]))
    below = b.op("Less", lengths, b.const([0]))
    return gather(b, count_up(b, after), where(b, below, after, lengths), 0)
