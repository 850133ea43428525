"""QuantizeLinear and DequantizeLinear: one scale, one scale for each index of an axis, or one scale for each step.

A scalar scale that differs between steps is a scale along axis 0: ``QuantizeLinear(x', scale', zero', axis=0)``.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.batching.alignment import axis_after_steps, expanded, unit_axes
from rewrites.batching.call import Call, Operand, Result
from rewrites.batching.table import rule
from rewrites.graph.values import static_dims
from rewrites.ops.versions import axis_of, squeeze, unsqueeze

__all__ = ["quantize"]

_LIMITS = {ir.DataType.UINT8: (0, 255), ir.DataType.INT8: (-128, 127)}


@rule("DequantizeLinear", "QuantizeLinear")
@rule("DequantizeLinear", "QuantizeLinear", domain="com.microsoft")
def quantize(call: Call) -> Sequence[Result]:
    """A scale of one element applies to the whole tensor, one of more to the axis."""
    if call.node.attributes.get_int("block_size", 0):
        raise call.refuse("NO-BATCHING-RULE", "the scales are blocked")
    scale, zero = call.operand(1), call.given(2)
    if scale.batched or (zero is not None and zero.batched):
        return _scale_of_step(call)
    if _is_single(call, scale):
        return call.like(call.values)
    return call.like(call.values, axis=axis_after_steps(call, 1))


def _scale_of_step(call: Call) -> list[Result]:
    by_axis = not all(_is_single(call, operand) for index in (1, 2) if (operand := call.given(index)) is not None)
    if by_axis or (not call.node.domain and call.opset < since.QUANTIZED_AXIS):
        return [Result(_written_out(call))]
    zero = None if call.given(2) is None else _vector(call, 2)
    return call.like([expanded(call, 0), _vector(call, 1), zero], axis=0)


def _written_out(call: Call) -> ir.Value:
    """``Cast(Clip(Round(x / scale) + zero))``, or ``(x - zero) * scale``, for float32 and integers of 8 bits."""
    b, rank, quantizes = call.build, call.rank(0), call.node.op_type == "QuantizeLinear"
    zero, scale = call.given(2), _by_axis(call, 1, rank)
    wide, narrow = (call.operand(0), zero) if quantizes else (call.operand(1), call.operand(0))
    kind = call.node.outputs[0].dtype or ir.DataType.UINT8 if narrow is None else narrow.inner.dtype
    if wide.inner.dtype != ir.DataType.FLOAT or kind not in _LIMITS:
        raise call.refuse("NO-BATCHING-RULE", f"scales that differ between steps, of {wide.inner.dtype} and {kind}")
    if quantizes and (zero is None or (not zero.batched and _is_single(call, zero))):
        ratio = b.op("Div", call.operand(0).value, scale)
        return b.like(call.node, [ratio, b.const(np.array(1, np.float32)), None if zero is None else zero.value])[0]
    if quantizes and call.opset < since.ROUND:
        raise call.refuse(
            "NO-BATCHING-RULE", f"the zero point differs between steps, and there is no Round before opset {since.ROUND}"
        )
    offset = None if zero is None else b.op("Cast", _by_axis(call, 2, rank), to=int(ir.DataType.FLOAT))
    if not quantizes:
        x = b.op("Cast", call.operand(0).value, to=int(ir.DataType.FLOAT))
        return b.op("Mul", x if offset is None else b.op("Sub", x, offset), scale)
    steps = b.op("Round", b.op("Div", call.operand(0).value, scale))
    shifted = steps if offset is None else b.op("Add", steps, offset)
    low, high = (b.const(np.array(limit, np.float32)) for limit in _LIMITS[kind])
    return b.op("Cast", b.op("Min", b.op("Max", shifted, low), high), to=int(kind))


def _by_axis(call: Call, index: int, rank: int) -> ir.Value:
    """Return a scale or zero point such that it broadcasts with the data."""
    operand = call.operand(index)
    if _is_single(call, operand):
        at = rank - call.rank(index)
        if at < 0:
            value = squeeze(call.build, operand.value, [int(operand.batched)])
            return unsqueeze(call.build, value, range(1, 1 + rank)) if operand.batched else value
        return unit_axes(call, operand, rank, at)
    return unit_axes(call, operand, rank, axis_of(call.node, 1, rank))


def _vector(call: Call, index: int) -> ir.Value:
    """Return a one-element operand as one element for each step."""
    return squeeze(call.build, expanded(call, index), range(1, 1 + call.rank(index)))


def _is_single(call: Call, operand: Operand) -> bool:
    """Whether the operand has one element; where that is not known, the axis matters and the rule refuses."""
    dims = static_dims(operand.inner)
    if dims is None:
        raise call.refuse("SHAPE-UNKNOWN", f"whether {operand.inner.name!r} has one element is not known")
    return dims in ((), (1,))
