"""Slice and Pad: their axes are shifted. If a Pad has no axes, pads of 0 are inserted for the steps.

Works around ORT-PAD-WRAP-OF-NOTHING.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from rewrites.batching.alignment import after_steps, axes_after_steps
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import shape_tensor, step_dims
from rewrites.batching.table import rule
from rewrites.graph.values import dim_of
from rewrites.ops.versions import DYNAMIC, ints_operand, slice_axis, slice_spec, squeeze, unsqueeze, where

__all__ = ["pad", "pad_by_attributes", "slice_", "slice_by_attributes"]


@rule("Slice", until=10)
def slice_by_attributes(call: Call) -> Sequence[Result]:
    """Emit a Slice with its axes shifted past axis 0 (the steps).

    Before opset 10, the bounds and the axes are attributes.
    """
    spec = slice_spec(call.node, call.opset)
    if spec is DYNAMIC:
        raise call.refuse("MALFORMED", "starts or ends are missing")
    return call.emit(call.values, axes=[after_steps(axis) for axis in spec.axes])


@rule("Slice", since=10)
def slice_(call: Call) -> Sequence[Result]:
    """``Slice(x, starts, ends, axes)`` -> ``Slice(x', starts, ends, axes + 1)``.

    Bounds and axes must be loop-invariant, but need not be constant.
    """
    call.require_invariant(1, 2, 3, 4)
    values = call.values
    if call.optional_operand(3) is not None:
        return call.emit([*values[:3], axes_after_steps(call, 3, call.operand(0).rank), *values[4:]])
    count = dim_of(call.operand(1).inner, 0)
    if not isinstance(count, int):
        raise call.refuse("DYNAMIC-STRUCTURE", "the number of sliced axes is not known")
    return call.emit([*values[:3], _indices_of_type(call, 1, range(1, count + 1)), *values[4:]])


@rule("Pad", until=11)
def pad_by_attributes(call: Call) -> Sequence[Result]:
    """Emit a Pad with pads of 0 inserted for the steps. Before opset 11, the pads are an attribute."""
    return call.emit(call.values, pads=_with_steps(call.node.attributes.get_ints("pads", ())))


@rule("Pad", since=11)
def pad(call: Call) -> Sequence[Result]:
    """``Pad(x, pads)`` -> ``Pad(x', pads)`` with pads of 0 inserted for the steps.

    If the node has an operand ``axes``, the axes are shifted past the steps instead.
    """
    call.require_invariant(1, 3)
    if call.batched(2):
        return [Result(_pad_with_batched_fill(call))]
    if call.node.attributes.get_string("mode", "constant") == "wrap":
        call.require_steps("onnxruntime does not wrap empty tensors")
    x, pads, fill = call.operand(0).value, call.operand(1).value, call.value(2)
    if call.optional_operand(3) is not None:
        return call.emit([x, pads, fill, axes_after_steps(call, 3, call.operand(0).rank)])
    known = ints_operand(call.node, 1)
    if known is not DYNAMIC and known is not None:
        return call.emit([x, call.build.const(_with_steps(known)), fill])
    rank, b = call.rank(0), call.build
    zero = b.const([0])
    begins, ends = slice_axis(b, pads, 0, 0, rank), slice_axis(b, pads, 0, rank, 2 * rank)
    return call.emit([x, b.op("Concat", zero, begins, zero, ends, axis=0), fill])


def _pad_with_batched_fill(call: Call) -> ir.Value:
    """Emit a Pad whose fill value differs between steps.

    The emitted Pad pads with zeros. Then a ``Where`` replaces the padded elements by the fill value of their step.
    """
    b, rank = call.build, call.rank(0)
    x, fill = call.operand(0), call.operand(2)
    plain = replace(call, operands=(*call.operands[:2], None, *call.operands[3:]))
    shape = shape_tensor(b, step_dims(call, x)) if rank else b.const(np.zeros(0, np.int64))
    inside = b.op("Expand", b.const(np.ones((), np.float32)), shape)
    (kept,) = b.like(call.node, [inside, call.value(1), None, call.value(3)])
    padded = pad(plain)[0].value if x.batched else b.like(call.node, plain.values)[0]
    value = squeeze(b, fill.value, range(1, 1 + call.rank(2)))
    return where(b, b.op("Cast", kept, to=int(ir.DataType.BOOL)), padded, unsqueeze(b, value, range(1, 1 + rank)))


def _with_steps(pads: Sequence[int]) -> list[int]:
    half = len(pads) // 2
    return [0, *pads[:half], 0, *pads[half:]]


def _indices_of_type(call: Call, index: int, numbers: Sequence[int]) -> ir.Value:
    """Return ``numbers`` as a constant that has the integer type of operand ``index``.

    All index inputs of a Slice must have the same type.
    """
    dtype = np.int32 if call.operand(index).inner.dtype == ir.DataType.INT32 else np.int64
    return call.build.const(np.array(numbers, dtype=dtype))
