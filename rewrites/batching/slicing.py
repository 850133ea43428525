"""Slice and Pad: the axes they name move one place up, or the steps get an entry that changes nothing."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.batching.alignment import after_steps
from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule
from rewrites.spelling import DYNAMIC, ints_operand, slice_axis, slice_spec
from rewrites.values import dim_of

__all__ = ["pad", "pad_by_attributes", "slice_", "slice_by_attributes"]


@rule("Slice", until=10)
def slice_by_attributes(call: Call) -> Sequence[Result]:
    """Before opset 10 all bounds are attributes."""
    spec = slice_spec(call.node, call.opset)
    if spec is DYNAMIC:
        raise call.refuse("MALFORMED", "starts or ends are missing")
    return call.like(call.values, axes=[after_steps(axis) for axis in spec.axes])


@rule("Slice", since=10)
def slice_(call: Call) -> Sequence[Result]:
    """``Slice(x, starts, ends, axes)`` -> ``Slice(x', starts, ends, axes + 1)``; bounds need not be constant, axes must be."""
    call.same_each_step(1, 2, 3, 4)
    axes = ints_operand(call.node, 3)
    if axes is DYNAMIC:
        raise call.refuse("DYNAMIC-STRUCTURE", "the axes are not constant")
    if axes is None:
        count = dim_of(call.operand(1).inner, 0)
        if not isinstance(count, int):
            raise call.refuse("DYNAMIC-STRUCTURE", "how many axes are sliced is not known")
        axes = tuple(range(count))
    values = call.values
    return call.like([*values[:3], _like_indices(call, 1, [after_steps(axis) for axis in axes]), *values[4:]])


@rule("Pad", until=11)
def pad_by_attributes(call: Call) -> Sequence[Result]:
    """Before opset 11 the pads are an attribute."""
    return call.like(call.values, pads=_with_steps(call.node.attributes.get_ints("pads", ())))


@rule("Pad", since=11)
def pad(call: Call) -> Sequence[Result]:
    """``Pad(x, pads)`` -> ``Pad(x', pads with 0 for the steps)``, or the same pads on axes one place up."""
    call.same_each_step(1, 2, 3)
    if call.node.attributes.get_string("mode", "constant") == "wrap":
        call.needs_steps("ORT does not wrap empty tensors")
    x, pads, fill = call.operand(0).value, call.operand(1).value, call.value(2)
    axes = ints_operand(call.node, 3)
    if axes is DYNAMIC:
        raise call.refuse("DYNAMIC-STRUCTURE", "the axes are not constant")
    if axes is not None:
        return call.like([x, pads, fill, _like_indices(call, 3, [after_steps(axis) for axis in axes])])
    known = ints_operand(call.node, 1)
    if known is not DYNAMIC and known is not None:
        return call.like([x, call.build.const(_with_steps(known)), fill])
    rank, b = call.rank(0), call.build
    zero = b.const([0])
    begins, ends = slice_axis(b, pads, 0, 0, rank), slice_axis(b, pads, 0, rank, 2 * rank)
    return call.like([x, b.op("Concat", zero, begins, zero, ends, axis=0), fill])


def _with_steps(pads: Sequence[int]) -> list[int]:
    half = len(pads) // 2
    return [0, *pads[:half], 0, *pads[half:]]


def _like_indices(call: Call, index: int, numbers: Sequence[int]) -> ir.Value:
    """Give ``numbers`` as a constant of the integer type of operand ``index``: an operator's index inputs share one type."""
    dtype = np.int32 if call.operand(index).inner.dtype == ir.DataType.INT32 else np.int64
    return call.build.const(np.array(numbers, dtype=dtype))
