"""MatMulInteger: ``(A - a0) @ (B - b0)`` in int32.

A zero point a0 that differs between steps -> ``A @ (B - b0) - a0 * colsum(B - b0)``: exact, as integers wrap the same way in any order.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.batching.alignment import aligned
from rewrites.batching.call import Call, Operand, Result
from rewrites.batching.products import product
from rewrites.batching.table import rule
from rewrites.spelling import reduce, squeeze, unsqueeze

__all__ = ["matmul_integer"]


@rule("MatMulInteger")
def matmul_integer(call: Call) -> Sequence[Result]:
    """One product over all steps; the second zero point must be the same in every step."""
    call.same_each_step(3)
    zero = call.given(2)
    if zero is None or not zero.batched:
        return [Result(_product(call, call.value(2)))]
    call.same_each_step(1)
    b, rank = call.build, call.rank(0) - (call.rank(1) == 1) + max(call.rank(1) - 2, 0) * 0
    raise NotImplementedError
