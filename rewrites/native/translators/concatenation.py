"""Concat: copies into the parts of one buffer, which are left out later where the parts can be computed in place.

Constants are joined when the plan is made: they may be the sizes of a shape.
"""

from collections.abc import Callable, Sequence

import numpy as np

from rewrites.native.body import elements
from rewrites.native.call import Call
from rewrites.native.operations import Op
from rewrites.native.views import View
from rewrites.ops.versions import axis_of

__all__ = ["CONCATENATION"]


def _concat(call: Call) -> Sequence[View]:
    parts = call.views
    parts = [call.body.as_type(part, parts[0].buffer.dtype) if part.truth else part for part in parts]
    if len(parts) == 1:
        return parts
    rank = len(parts[0].shape)
    axis = axis_of(call.node, 0, rank)
    others = [(*part.shape[:axis], *part.shape[axis + 1 :]) for part in parts]
    for other in others:
        call.body.free.check_same(others[0], other)
    if len(set(others)) > 1 or not 0 <= axis < rank:
        raise call.refuse("NATIVE-SHAPE", f"the shapes {[part.shape for part in parts]} cannot be joined")
    if any(call.body.free.has(part.shape[axis]) for part in parts):
        raise call.refuse("NATIVE-SHAPE", "it joins along an axis whose size is known only when the model runs")
    if all(part.buffer.array is not None for part in parts):
        return [call.body.constant(np.concatenate([elements(part) for part in parts], axis), truth=parts[0].truth)]
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    result = call.body.fresh(shape, parts[0])
    offset = 0
    for part in parts:
        place = View(result.buffer, part.shape, result.strides, offset * result.strides[axis], part.truth)
        call.body.emit(Op.COPY, place, part)
        offset += part.shape[axis]
    return [result]


CONCATENATION: dict[str, Callable[[Call], Sequence[View]]] = {"Concat": _concat}
