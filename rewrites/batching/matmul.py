"""MatMul, and FusedMatMul as ORT's optimiser writes it.

Works round ORT-TRANSPOSED-TIMES-VECTOR and ORT-PRODUCT-OF-NOTHING.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.batching.call import Call, Result
from rewrites.batching.products import product
from rewrites.batching.table import rule

__all__ = ["fused_matmul", "matmul"]


@rule("MatMul")
def matmul(call: Call) -> Sequence[Result]:
    """``MatMul(x, w)`` -> one MatMul over all steps."""
    return [Result(product(call, lambda left, right: call.build.op("MatMul", left, right), plain=True))]


@rule("FusedMatMul", domain="com.microsoft")
def fused_matmul(call: Call) -> Sequence[Result]:
    """The operator ignores its transposition flags for vectors, so they go where a vector becomes a matrix."""
    given = call.node.attributes
    if given.get_int("transBatchA", 0) or given.get_int("transBatchB", 0):
        raise call.refuse("NO-BATCHING-RULE", "batch axes are transposed")
    if given.get_int("transA", 0):
        call.needs_steps("ORT does not broadcast a transposed operand to empty tensors")
        if call.rank(1) == 1:
            raise call.refuse("NO-BATCHING-RULE", "ORT multiplies a transposed matrix by a vector wrongly")
    flags = {"transA": given.get_int("transA", 0), "transB": given.get_int("transB", 0)}
    for index, flag in enumerate(flags):
        flags[flag] = int(bool(flags[flag]) and call.rank(index) > 1)

    def emit(left: ir.Value, right: ir.Value) -> ir.Value:
        return call.build.like(call.node, [left, right], **flags)[0]

    return [Result(product(call, emit, plain=False))]
