"""Clip: bounds as attributes (before opset 11), as scalars, or as scalars that differ between steps.

``Clip(x, lo, hi)`` with a batched bound -> ``Where(x < lo, lo, x)``, then the same from above, which is what Clip is defined to be.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.batching.alignment import aligned
from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule

__all__ = ["clip"]

_COMPARED = frozenset(
    {
        ir.DataType.FLOAT,
        ir.DataType.DOUBLE,
        ir.DataType.INT8,
        ir.DataType.INT32,
        ir.DataType.INT64,
        ir.DataType.UINT8,
        ir.DataType.UINT32,
    }
)


@rule("Clip")
def clip(call: Call) -> Sequence[Result]:
    """Keep the node where its bounds are the same in every step."""
    if not call.batched(1) and not call.batched(2):
        return call.like(call.values)
    dtype = call.operand(0).inner.dtype
    if dtype not in _COMPARED:
        raise call.refuse("NO-BATCHING-RULE", f"bounds that differ between steps, of element type {dtype}")
    x, low, high = [*aligned(call), None][:3]
    assert x is not None
    b = call.build
    if low is not None:
        x = b.op("Where", b.op("Less", x, low), low, x)
    if high is not None:
        x = b.op("Where", b.op("Less", high, x), high, x)
    return [Result(x)]
