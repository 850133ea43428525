"""Softmax, LogSoftmax and Hardmax work along one axis from version 13 on; before, along all axes from theirs (1) on, together.

Softmax <axis = 1> (x)  ->  Softmax <axis = 1> (x)                       (all other axes from 1 on are of size 1)
Softmax <axis = 1> (x)  ->  Reshape (Softmax <axis = -1> (Flatten <axis = 1> (x)), Shape (x))
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.graph.values import dim_of
from rewrites.migration.step import Step

__all__ = ["one_axis"]


def one_axis(step: Step) -> Sequence[ir.Value] | None:
    """Write what version 11 means with a single axis."""
    b, x, axis, rank = step.builder, step.required(0), step.int_("axis", 1), step.rank()
    if rank is not None and (single := _single_axis(x, axis + rank if axis < 0 else axis, rank)) is not None:
        return step.like(axis=single)
    flat = b.op("Flatten", x, axis=axis)
    return [step.reshape_back(step.like([flat], axis=-1)[0], b.op("Shape", x))]


def _single_axis(x: ir.Value, axis: int, rank: int) -> int | None:
    """Return the only axis from ``axis`` on that is not known to be 1."""
    wide = [i for i in range(axis, rank) if dim_of(x, i) != 1]
    if len(wide) > 1 or axis >= rank:
        return None
    return wide[0] if wide else rank - 1
