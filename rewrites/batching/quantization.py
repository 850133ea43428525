"""Quantisation, with one scale for all steps, one for each index of an axis, or one for each step.

- If a scalar scale differs between steps, it becomes a scale along axis 0: ``QuantizeLinear(x', scale', zero', axis=0)``.
- ``y, s, z = DynamicQuantizeLinear(x)`` computes its scale from the whole tensor. It is replaced by operators that compute minimum,
  maximum, scale and zero point of each step, and by ``QuantizeLinear(x', s', z', axis=0)``. The operators and their order are those
  of the definition of DynamicQuantizeLinear, so the results are rounded in the same way.
- QLinearMatMul and QLinearConv become one product over all steps. If a scale differs between steps, they become an integer product
  that is scaled afterwards: ``QuantizeLinear(Cast(MatMulInteger(a, b)) * (sa * sb / sy), 1, zy)``.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.batching.alignment import axis_after_steps, stacked_operand, with_rank, with_unit_axes
from rewrites.batching.call import Call, Operand, Result
from rewrites.batching.dims import first_dim, fold_operand, unfold_results
from rewrites.batching.fold_into_batch import fold_batch
from rewrites.batching.products import product
from rewrites.batching.table import rule
from rewrites.graph.type_names import type_name
from rewrites.graph.values import dim_of, static_dims
from rewrites.ops.versions import axis_of, reduce, squeeze, unsqueeze

__all__ = ["dynamic_product", "dynamic_quantize", "quantize", "quantized_convolution", "quantized_matmul"]


_LIMITS = {ir.DataType.UINT8: (0, 255), ir.DataType.INT8: (-128, 127)}


@rule("DequantizeLinear", "QuantizeLinear")
@rule("DequantizeLinear", "QuantizeLinear", domain="com.microsoft")
def quantize(call: Call) -> Sequence[Result]:
    """Emit the node, with a scale for each step if the scale or the zero point differs between steps.

    The emitted node then has one scale for each index of axis 0 (the steps). Otherwise, a scale with several elements stays the
    same, and its ``axis`` is shifted past axis 0.
    """
    if call.node.attributes.get_int("block_size", 0):
        raise call.refuse("NO-BATCHING-RULE", "the scales are blocked")
    scale, zero = call.operand(1), call.optional_operand(2)
    if scale.batched or (zero is not None and zero.batched):
        return _with_scale_per_step(call)
    if _has_one_element_per_step(call, scale):
        return call.emit(call.values)
    return call.emit(call.values, axis=axis_after_steps(call, 1))


def _with_scale_per_step(call: Call) -> list[Result]:
    by_axis = not all(
        _has_one_element_per_step(call, operand) for index in (1, 2) if (operand := call.optional_operand(index)) is not None
    )
    if by_axis or (not call.node.domain and call.opset < since.QUANTIZED_AXIS):
        return [Result(_by_definition(call))]
    zero = None if call.optional_operand(2) is None else _vector_of_steps(call, 2)
    return call.emit([stacked_operand(call, 0), _vector_of_steps(call, 1), zero], axis=0)


def _by_definition(call: Call) -> ir.Value:
    """Emit the operator's definition: ``Cast(Clip(Round(x / scale) + zero))`` or ``(x - zero) * scale``.

    Only float32 and 8-bit integers are supported.
    """
    b, rank, quantizes = call.build, call.rank(0), call.node.op_type == "QuantizeLinear"
    zero, scale = call.optional_operand(2), _broadcastable(call, 1, rank)
    wide, narrow = (call.operand(0), zero) if quantizes else (call.operand(1), call.operand(0))
    kind = call.node.outputs[0].dtype or ir.DataType.UINT8 if narrow is None else narrow.inner.dtype
    if wide.inner.dtype != ir.DataType.FLOAT or kind not in _LIMITS:
        types = f"{type_name(wide.inner.dtype)} and {type_name(kind)}"
        raise call.refuse("NO-BATCHING-RULE", f"scales that differ between steps, of {types}")
    if quantizes and (zero is None or (not zero.batched and _has_one_element_per_step(call, zero))):
        ratio = b.op("Div", call.operand(0).value, scale)
        return b.like(call.node, [ratio, b.const(np.array(1, np.float32)), None if zero is None else zero.value])[0]
    if quantizes and call.opset < since.ROUND:
        raise call.refuse(
            "NO-BATCHING-RULE", f"the zero point differs between steps, and there is no Round before opset {since.ROUND}"
        )
    offset = None if zero is None else b.op("Cast", _broadcastable(call, 2, rank), to=int(ir.DataType.FLOAT))
    if not quantizes:
        x = b.op("Cast", call.operand(0).value, to=int(ir.DataType.FLOAT))
        return b.op("Mul", x if offset is None else b.op("Sub", x, offset), scale)
    steps = b.op("Round", b.op("Div", call.operand(0).value, scale))
    shifted = steps if offset is None else b.op("Add", steps, offset)
    low, high = (b.const(np.array(limit, np.float32)) for limit in _LIMITS[kind])
    return b.op("Cast", b.op("Min", b.op("Max", shifted, low), high), to=int(kind))


def _broadcastable(call: Call, index: int, rank: int) -> ir.Value:
    """Insert axes of size 1 into operand ``index``, a scale or zero point, to broadcast it with the data.

    ``rank``: the rank of the data in one step.
    """
    operand = call.operand(index)
    if _has_one_element_per_step(call, operand):
        at = rank - call.rank(index)
        if at < 0:
            value = squeeze(call.build, operand.value, [int(operand.batched)])
            return unsqueeze(call.build, value, range(1, 1 + rank)) if operand.batched else value
        return with_unit_axes(call, operand, rank, at)
    return with_unit_axes(call, operand, rank, axis_of(call.node, 1, rank))


def _vector_of_steps(call: Call, index: int) -> ir.Value:
    """Return operand ``index`` as a vector with one element for each step. Its size in one step must be 1."""
    return squeeze(call.build, stacked_operand(call, index), range(1, 1 + call.rank(index)))


def _has_one_element_per_step(call: Call, operand: Operand) -> bool:
    """Return True if ``operand`` has one element in each step. This element applies to all the data.

    Raise Refused if the size of ``operand`` is unknown.
    """
    dims = static_dims(operand.inner)
    if dims is None:
        raise call.refuse("SHAPE-UNKNOWN", f"it is not known if {operand.inner.name!r} has one element")
    return dims in ((), (1,))


_LEVELS = 255.0
_MATRIX = 2


@rule("DynamicQuantizeLinear")
def dynamic_quantize(call: Call) -> Sequence[Result]:
    """Emit nodes that compute a scale and a zero point for each step, and quantise the step with them.

    Before opset 13, QuantizeLinear has no axis, so simpler operators replace it.
    """
    b, x = call.build, call.operand(0).value
    axes = range(1, 1 + call.rank(0))
    zero, unit, levels = (b.const(np.array(number, dtype=np.float32)) for number in (0.0, 1.0, _LEVELS))
    low = b.op("Min", reduce(b, "ReduceMin", x, axes, keepdims=False) if axes else x, zero)
    high = b.op("Max", reduce(b, "ReduceMax", x, axes, keepdims=False) if axes else x, zero)
    spread = b.op("Div", b.op("Sub", high, low), levels)
    scale = b.op("Where", b.op("Equal", high, low), unit, spread)
    centre = b.op("Sub", zero, b.op("Div", low, scale))
    inside = b.op("Clip", centre, zero, levels)
    point = b.op("Cast", b.op("Round", inside), to=int(ir.DataType.UINT8))
    if call.opset >= since.QUANTIZED_AXIS:
        return [Result(b.op("QuantizeLinear", x, scale, point, axis=0)), Result(scale), Result(point)]
    within = list(axes)
    shifted = b.op("Add", b.op("Round", b.op("Div", x, unsqueeze(b, scale, within))), unsqueeze(b, b.op("Round", inside), within))
    return [Result(b.op("Cast", b.op("Clip", shifted, zero, levels), to=int(ir.DataType.UINT8))), Result(scale), Result(point)]


@rule("DynamicQuantizeMatMul", domain="com.microsoft")
def dynamic_product(call: Call) -> Sequence[Result]:
    """Emit ``DynamicQuantizeMatMul(x, w, s, z, bias)`` for all steps. Only x may be batched.

    Each step of x is quantised to q with its own scale sx and zero point zx. The result is

        (q @ (w - z) - zx * colsum(w - z)) * sx * s + bias
    """
    call.require_shared(*range(1, len(call.operands)))
    rank, b, wide = call.rank(0), call.build, int(ir.DataType.INT32)
    if rank < _MATRIX or call.rank(1) != _MATRIX:
        raise call.refuse("NO-BATCHING-RULE", f"a product of ranks {rank} and {call.rank(1)}")
    quantized, scale, point = (result.value for result in dynamic_quantize(call))
    weights = b.op("Cast", call.operand(1).value, to=wide)
    zero = call.value(3)
    weights = weights if zero is None else b.op("Sub", weights, b.op("Cast", zero, to=wide))
    within = range(1, 1 + rank)
    shift = b.op("Mul", unsqueeze(b, b.op("Cast", point, to=wide), within), reduce(b, "ReduceSum", weights, [0], keepdims=False))
    total = b.op("Sub", b.op("MatMulInteger", quantized, call.value(1), None, zero), shift)
    scales = b.op("Mul", unsqueeze(b, scale, within), call.operand(2).value)
    total = b.op("Mul", b.op("Cast", total, to=int(ir.DataType.FLOAT)), scales)
    bias = call.value(4)
    return [Result(total if bias is None else b.op("Add", total, bias))]


_SCALES, _ZEROS = (1, 4, 6), (2, 5, 7)


@rule("QLinearMatMul")
def quantized_matmul(call: Call) -> Sequence[Result]:
    """Emit one product for all steps. The zero points must be loop-invariant."""
    call.require_shared(*_ZEROS)
    matrices, rest, b = replace(call, operands=(call.operand(0), call.operand(3))), call.values, call.build
    scaled = any(map(call.batched, _SCALES))

    def emit(left: ir.Value, right: ir.Value) -> ir.Value:
        if scaled:
            return b.op("MatMulInteger", left, right, rest[2], rest[5])
        return b.like(call.node, [left, *rest[1:3], right, *rest[4:]])[0]

    varies = call.batched(0) or call.batched(3)
    total = product(matrices, emit, is_matmul=False) if varies else emit(call.operand(0).value, call.operand(3).value)
    if not scaled:
        return [Result(total)]
    left, right = call.rank(0), call.rank(3)
    rank = max(left, right) - (left == 1) - (right == 1) if min(left, right) == 1 else max(left, right)
    if right == 1 and call.rank(4) == 1:
        raise call.refuse("NO-BATCHING-RULE", "a vector with a scale that is a vector")
    scales = [with_rank(call, call.operand(index), max(rank, call.rank(index))) for index in _SCALES]
    return [Result(_requantized(call, total, scales))]


@rule("QLinearConv")
def quantized_convolution(call: Call) -> Sequence[Result]:
    """Emit the node with the steps merged into its batch axis.

    Weights and zero points must be loop-invariant. The weights may have a scale for each channel.
    """
    call.require_shared(*_ZEROS, 3, 8)
    if not any(map(call.batched, _SCALES)):
        return fold_batch(call)
    b, rank, values = call.build, call.rank(0), call.values
    if call.rank(5) and dim_of(call.operand(5).inner, 0) != 1:
        raise call.refuse("NO-BATCHING-RULE", "the scales differ between steps, and the weights have a zero point for each channel")
    operands = [values[3], values[2], values[5]]
    attributes = list(call.node.attributes.values())
    if call.batched(0):
        (total,) = b.node("ConvInteger", [fold_operand(call, 0), *operands], 1, attributes)
        total = unfold_results(call, [total], first_dim(call, 0))[0].value
    else:
        (total,) = b.node("ConvInteger", [call.value(0), *operands], 1, attributes)
    bias = call.optional_operand(8)
    if bias is not None:
        total = b.op("Add", total, with_unit_axes(call, bias, rank, 1))
    scales = [
        with_unit_axes(call, call.operand(index), rank, 1) if call.rank(index) else with_rank(call, call.operand(index), rank)
        for index in _SCALES
    ]
    return [Result(_requantized(call, total, scales))]


def _requantized(call: Call, total: ir.Value, scales: Sequence[ir.Value]) -> ir.Value:
    b, wide = call.build, int(ir.DataType.FLOAT)
    left_scale, right_scale, last = (b.op("Cast", scale, to=wide) for scale in scales)
    scaled = b.op("Mul", b.op("Cast", total, to=wide), b.op("Div", b.op("Mul", left_scale, right_scale), last))
    return b.op("QuantizeLinear", scaled, b.const(np.array(1, np.float32)), call.value(7))
