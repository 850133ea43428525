"""MatMulInteger: ``(A - a0) @ (B - b0)`` in int32.

A zero point a0 that differs between steps -> ``A @ (B - b0) - a0 * colsum(B - b0)``: exact, since integers wrap the same way in any
order.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.batching.call import Call, Result
from rewrites.batching.products import product
from rewrites.batching.table import rule
from rewrites.ops.versions import reduce, squeeze, unsqueeze

__all__ = ["matmul_integer"]


@rule("MatMulInteger")
def matmul_integer(call: Call) -> Sequence[Result]:
    """One product over all steps; the second zero point must be loop-invariant."""
    call.same_each_step(3)
    zero, b = call.given(2), call.build
    if zero is None or not zero.batched:
        return [Result(_product(call, call.value(2)))]
    call.same_each_step(1)
    left, right = call.rank(0), call.rank(1)
    rank = max(left, right) - (left == 1 or right == 1)
    raw = _product(call, None)
    shift = b.op("Cast", zero.value, to=int(ir.DataType.INT32))
    shift = squeeze(b, shift, range(1, 1 + call.rank(2)))
    columns = reduce(b, "ReduceSum", _centred(call), [max(right - 2, 0)], keepdims=left > 1 and right > 1)
    correction = b.op("Mul", unsqueeze(b, shift, range(1, 1 + rank)), columns)
    return [Result(b.op("Sub", raw, correction))]


def _product(call: Call, zero: ir.Value | None) -> ir.Value:
    def emit(left: ir.Value, right: ir.Value) -> ir.Value:
        return call.build.like(call.node, [left, right, zero, call.value(3)])[0]

    if not call.batched(0) and not call.batched(1):
        return emit(call.operand(0).value, call.operand(1).value)
    return product(call, emit, plain=False)


def _centred(call: Call) -> ir.Value:
    """Return ``B - b0`` in int32."""
    b = call.build
    wide = b.op("Cast", call.operand(1).value, to=int(ir.DataType.INT32))
    zero = call.value(3)
    return wide if zero is None else b.op("Sub", wide, b.op("Cast", zero, to=int(ir.DataType.INT32)))
