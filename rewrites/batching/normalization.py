"""Normalisations over trailing axes: the axis moves one position up.

A scale or bias that differs between steps -> a scale of ones in the operator, then Mul and Add.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.batching.alignment import axis_after_steps, with_rank
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import shape_tensor, step_dims
from rewrites.batching.folding import first_dim, folded, unfolded
from rewrites.batching.table import rule
from rewrites.graph.values import dim_of, static_dims

__all__ = ["skip_normalization", "trailing_normalization"]

_NARROW = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16})


@rule("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
def trailing_normalization(call: Call) -> Sequence[Result]:
    """Scale and bias belong to the trailing axes, and are counted from the end."""
    if not call.batched(1) and not call.batched(2):
        return call.like(call.values, axis=axis_after_steps(call, -1))
    b, x, scale = call.build, call.operand(0), call.operand(1)
    rank = call.rank(0)
    if scale.inner.dtype in _NARROW or x.inner.dtype in _NARROW:
        raise call.refuse("PRECISION", "taking scale and bias out would round to 16 bits first")
    axis = axis_after_steps(call, -1) - (0 if x.batched else 1)
    plain, *statistics = b.like(call.node, [x.value, _ones(call, scale.inner.dtype)], axis=axis)
    result = b.op("Mul", plain, with_rank(call, scale, max(rank, call.rank(1))))
    bias = call.given(2)
    if bias is not None:
        result = b.op("Add", result, with_rank(call, bias, rank))
    return [Result(result), *(Result(value, x.batched) for value in statistics)]


def _ones(call: Call, dtype: ir.DataType | None) -> ir.Value:
    """Return a scale that changes nothing, of the shape that the scale has in one step."""
    scale = call.operand(1)
    if dtype is None:
        raise call.refuse("TYPE-UNKNOWN", f"the element type of {scale.inner.name!r} is not known")
    dims = static_dims(scale.inner)
    if dims is not None:
        return call.build.const(np.ones(dims, dtype.numpy()))
    call.rank(1)
    shape = shape_tensor(call.build, step_dims(call, scale))
    return call.build.op("ConstantOfShape", shape, value=ir.tensor(np.ones(1, dtype.numpy())))


@rule("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain="com.microsoft")
def skip_normalization(call: Call) -> Sequence[Result]:
    """What is added first must surely have the shape of the data; scale and bias must be loop-invariant."""
    call.same_weights(*range(2, len(call.operands)))
    data, added = call.operand(0).inner, call.operand(1).inner
    dims = [(dim_of(data, axis), dim_of(added, axis)) for axis in range(call.rank(0))]
    if call.rank(0) != call.rank(1) or any(one is None or one != other for one, other in dims):
        raise call.refuse("NO-BATCHING-RULE", "data and what is added to them differ in shape, or may do so")
    results = call.build.like(call.node, [folded(call, 0), folded(call, 1), *call.values[2:]])
    return unfolded(call, results, first_dim(call, 0))
