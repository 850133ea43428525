"""QLinearMatMul and QLinearConv.

The same scales in every step: one product over all steps. Scales that differ between steps: the product in integers, then scaled,
rounded and shifted as the operators do it: ``QuantizeLinear(Cast(MatMulInteger(a, b)) * (sa * sb / sy), 1, zy)``.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from rewrites.batching.alignment import unit_axes, with_rank
from rewrites.batching.call import Call, Result
from rewrites.batching.fold_into_batch import fold_batch
from rewrites.batching.folding import first_dim, folded, unfolded
from rewrites.batching.products import product
from rewrites.batching.table import rule
from rewrites.graph.values import dim_of

__all__ = ["quantized_convolution", "quantized_matmul"]

_SCALES, _ZEROS = (1, 4, 6), (2, 5, 7)


@rule("QLinearMatMul")
def quantized_matmul(call: Call) -> Sequence[Result]:
    """Zero points must be loop-invariant."""
    call.same_weights(*_ZEROS)
    matrices, rest, b = replace(call, operands=(call.operand(0), call.operand(3))), call.values, call.build
    scaled = any(map(call.batched, _SCALES))

    def emit(left: ir.Value, right: ir.Value) -> ir.Value:
        if scaled:
            return b.op("MatMulInteger", left, right, rest[2], rest[5])
        return b.like(call.node, [left, *rest[1:3], right, *rest[4:]])[0]

    varies = call.batched(0) or call.batched(3)
    found = product(matrices, emit, plain=False) if varies else emit(call.operand(0).value, call.operand(3).value)
    if not scaled:
        return [Result(found)]
    left, right = call.rank(0), call.rank(3)
    rank = max(left, right) - (left == 1) - (right == 1) if min(left, right) == 1 else max(left, right)
    if right == 1 and call.rank(4) == 1:
        raise call.refuse("NO-BATCHING-RULE", "a vector with a scale that is a vector")
    scales = [with_rank(call, call.operand(index), max(rank, call.rank(index))) for index in _SCALES]
    return [Result(_requantized(call, found, scales))]


@rule("QLinearConv")
def quantized_convolution(call: Call) -> Sequence[Result]:
    """Weights and zero points must be loop-invariant; the scale of the weights may be one for each channel."""
    call.same_weights(*_ZEROS, 3, 8)
    if not any(map(call.batched, _SCALES)):
        return fold_batch(call)
    b, rank, values = call.build, call.rank(0), call.values
    if call.rank(5) and dim_of(call.operand(5).inner, 0) != 1:
        raise call.refuse("NO-BATCHING-RULE", "the scales differ between steps, and the weights have a zero point for each channel")
    operands = [values[3], values[2], values[5]]
    attributes = list(call.node.attributes.values())
    if call.batched(0):
        (found,) = b.node("ConvInteger", [folded(call, 0), *operands], 1, attributes)
        found = unfolded(call, [found], first_dim(call, 0))[0].value
    else:
        (found,) = b.node("ConvInteger", [call.value(0), *operands], 1, attributes)
    bias = call.given(8)
    if bias is not None:
        found = b.op("Add", found, unit_axes(call, bias, rank, 1))
    scales = [
        unit_axes(call, call.operand(index), rank, 1) if call.rank(index) else with_rank(call, call.operand(index), rank)
        for index in _SCALES
    ]
    return [Result(_requantized(call, found, scales))]


def _requantized(call: Call, found: ir.Value, scales: Sequence[ir.Value]) -> ir.Value:
    b, wide = call.build, int(ir.DataType.FLOAT)
    one, other, last = (b.op("Cast", scale, to=wide) for scale in scales)
    scaled = b.op("Mul", b.op("Cast", found, to=wide), b.op("Div", b.op("Mul", one, other), last))
    return b.op("QuantizeLinear", scaled, b.const(np.array(1, np.float32)), call.value(7))
