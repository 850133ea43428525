"""DynamicQuantizeLinear, and the product that quantises its first operand so.

Scale and zero point come from the whole tensor, so each step has its own.

``y, s, z = DynamicQuantizeLinear(x)`` -> the minimum and maximum of each step, its scale and zero point as the operator defines
them, and ``QuantizeLinear(x', s', z', axis=0)``. The same float operations in the same order, so nothing is rounded differently.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule
from rewrites.ops.versions import reduce, unsqueeze

__all__ = ["dynamic_product", "dynamic_quantize"]

_LEVELS = 255.0
_MATRIX = 2


@rule("DynamicQuantizeLinear")
def dynamic_quantize(call: Call) -> Sequence[Result]:
    """Before opset 13 QuantizeLinear has no axis, so it is written out."""
    b, x = call.build, call.operand(0).value
    axes = range(1, 1 + call.rank(0))
    zero, one, levels = (b.const(np.array(number, dtype=np.float32)) for number in (0.0, 1.0, _LEVELS))
    low = b.op("Min", reduce(b, "ReduceMin", x, axes, keepdims=False) if axes else x, zero)
    high = b.op("Max", reduce(b, "ReduceMax", x, axes, keepdims=False) if axes else x, zero)
    spread = b.op("Div", b.op("Sub", high, low), levels)
    scale = b.op("Where", b.op("Equal", high, low), one, spread)
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
    """``DynamicQuantizeMatMul(x, w, s, z, bias)``: in integers ``q @ (w - z) - zx * colsum(w - z)``, then scaled.

    Weights, their scales and zero points, and the bias must be loop-invariant.
    """
    call.same_weights(*range(1, len(call.operands)))
    rank, b, wide = call.rank(0), call.build, int(ir.DataType.INT32)
    if rank < _MATRIX or call.rank(1) != _MATRIX:
        raise call.refuse("NO-BATCHING-RULE", f"a product of ranks {rank} and {call.rank(1)}")
    quantized, scale, point = (result.value for result in dynamic_quantize(call))
    weights = b.op("Cast", call.operand(1).value, to=wide)
    zero = call.value(3)
    weights = weights if zero is None else b.op("Sub", weights, b.op("Cast", zero, to=wide))
    within = range(1, 1 + rank)
    shift = b.op("Mul", unsqueeze(b, b.op("Cast", point, to=wide), within), reduce(b, "ReduceSum", weights, [0], keepdims=False))
    found = b.op("Sub", b.op("MatMulInteger", quantized, call.value(1), None, zero), shift)
    scales = b.op("Mul", unsqueeze(b, scale, within), call.operand(2).value)
    found = b.op("Mul", b.op("Cast", found, to=int(ir.DataType.FLOAT)), scales)
    bias = call.value(4)
    return [Result(found if bias is None else b.op("Add", found, bias))]
