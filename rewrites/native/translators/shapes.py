"""Shapes as numbers, what is filled in a shape, and numbers as rows of zeros with a one.

A size that is known only when the model runs is a number of the sample that the body is compiled for: where it gets into the plan
as a number, and not as a size, the plans for two samples differ and there is none.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.native.call import Call, Translator
from rewrites.native.operations import NUMPY, Op
from rewrites.native.views import View, broadcast
from rewrites.ops.versions import axis_of

__all__ = ["SHAPES"]


def _shape(call: Call) -> Sequence[View]:
    sizes = call.view(0).shape
    start = call.node.attributes.get_int("start", 0)
    end = call.node.attributes.get_int("end", len(sizes))
    return [call.body.constant(np.array(sizes[start:end], np.int64))]


def _size(call: Call) -> Sequence[View]:
    return [call.body.constant(np.array(call.view(0).count, np.int64))]


def _filled(call: Call) -> Sequence[View]:
    shape = call.sizes(0)
    given = call.node.attributes.get("value")
    if shape is None or shape.ndim != 1:
        raise call.refuse("NATIVE-FORM", "its shape is not constant")
    number = np.zeros(1, np.float32) if given is None else given.as_tensor().numpy()
    dims = tuple(int(size) for size in shape)
    if number.dtype not in NUMPY.values() or 0 in dims:
        raise call.refuse("NATIVE-TYPE", f"it gives {list(dims)} elements of {number.dtype}")
    return [broadcast(call.body.constant(number.reshape(())), dims)]


def _one_hot(call: Call) -> Sequence[View]:
    """An index is counted from the end where it is negative; one that is outside has no one."""
    body, indices, depth, values = call.body, call.view(0), call.known(1), call.view(2)
    if depth is None or depth.size != 1 or int(depth.item()) < 1 or values.shape != (2,):
        raise call.refuse("NATIVE-FORM", "its depth is not constant")
    if indices.dtype not in (ir.DataType.INT64, ir.DataType.INT32):
        raise call.refuse("NATIVE-TYPE", f"its indices are {ir.DataType(indices.dtype).name}")
    count, axis = int(depth.item()), axis_of(call.node, -1, len(indices.shape) + 1)
    shape, strides = list(indices.shape), list(indices.strides)
    shape.insert(axis, 1)
    strides.insert(axis, 0)
    spread = View(indices.buffer, tuple(shape), tuple(strides), indices.offset)
    numbers = np.arange(count).reshape(count, *[1] * (len(indices.shape) - axis))
    kind = np.int64 if indices.dtype == ir.DataType.INT64 else np.int32
    ways = [body.elementwise(Op.EQUAL, spread, body.constant(each.astype(kind)), truth=True) for each in (numbers, numbers - count)]
    here = body.elementwise(Op.MAX, *ways, truth=True)
    off, on = (View(values.buffer, (), (), values.offset + at * values.strides[0], values.truth) for at in (0, 1))
    return [body.elementwise(Op.SELECT, here, on, off, truth=values.truth)]


SHAPES: dict[str, Translator] = {
    "ConstantOfShape": _filled,
    "OneHot": _one_hot,
    "Shape": _shape,
    "Size": _size,
}
