"""Shape, Size and EyeLike. Their results depend only on the shape of their operand.

All steps have the same shape, so the results are loop-invariant.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule
from rewrites.graph.values import static_dims
from rewrites.ops.versions import reduce, slice_axis

__all__ = ["eye_like", "shape", "size"]

_END = 2**63 - 1


@rule("Shape")
def shape(call: Call) -> Sequence[Result]:
    """Emit the shape that ``x'`` has without axis 0 (the steps). If all sizes are known, it is a constant."""
    start = call.node.attributes.get_int("start", 0)
    end = call.node.attributes.get_int("end", _END)
    known = call.operand(0).inner.shape
    dims = None if known is None else known.dims[start:end]
    if dims is not None and all(isinstance(dim, int) for dim in dims):
        return [Result(call.build.const(np.array(dims, dtype=np.int64)), batched=False)]
    dims_of_step = _step_shape(call)
    if (start, end) != (0, _END):
        dims_of_step = slice_axis(call.build, dims_of_step, 0, start, end)
    return [Result(dims_of_step, batched=False)]


@rule("Size")
def size(call: Call) -> Sequence[Result]:
    """Emit the product of the sizes that ``x'`` has without axis 0 (the steps)."""
    dims = static_dims(call.operand(0).inner)
    if dims is not None:
        return [Result(call.build.const(np.array(np.prod(dims, dtype=np.int64))), batched=False)]
    return [Result(reduce(call.build, "ReduceProd", _step_shape(call), [0], keepdims=False), batched=False)]


@rule("EyeLike")
def eye_like(call: Call) -> Sequence[Result]:
    """``EyeLike(x)`` -> ``EyeLike(zeros)``. ``zeros`` has the shape of ``x`` in one step."""
    dtype = call.node.outputs[0].dtype
    if dtype is None:
        raise call.refuse("TYPE-UNKNOWN", "the element type of the result is not known")
    zeros = call.build.op("ConstantOfShape", _step_shape(call))
    return [Result(value, batched=False) for value in call.build.like(call.node, [zeros], dtype=int(dtype))]


def _step_shape(call: Call) -> ir.Value:
    b, x = call.build, call.operand(0).value
    return b.op("Shape", x, start=1) if b.opset >= 15 else slice_axis(b, b.op("Shape", x), 0, 1, _END)
