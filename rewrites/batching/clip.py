"""Clip: bounds as attributes (before opset 11), as scalars, or as scalars that differ between steps.

``Clip(x, lo, hi)`` with a batched bound -> ``Where(x < lo, lo, x)``, then the same from above, which is what Clip is defined to be.
"""

from collections.abc import Sequence

import numpy as np
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
    """Keep the node where its bounds are loop-invariant."""
    if not call.batched(1) and not call.batched(2):
        return call.like(call.values)
    dtype = call.operand(0).inner.dtype
    if dtype is None or dtype not in _COMPARED:
        raise call.refuse("NO-BATCHING-RULE", f"bounds that differ between steps, of element type {dtype}")
    x, low, high = [*aligned(call), None][:3]
    assert x is not None
    b, limits = call.build, _limits(dtype)
    low, high = (b.const(limit) if bound is None else bound for bound, limit in zip((low, high), limits, strict=True))
    x = b.op("Where", b.op("Less", x, low), low, x)
    return [Result(b.op("Where", b.op("Less", high, x), high, x))]


def _limits(dtype: ir.DataType) -> tuple[np.ndarray, np.ndarray]:
    """Return what stands for absent bounds: the finite limits of the type, so infinities are clipped even then."""
    kind = dtype.numpy()
    info = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
    return np.array(info.min, dtype=kind), np.array(info.max, dtype=kind)
