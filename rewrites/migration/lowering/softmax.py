"""Softmax, LogSoftmax and Hardmax along one axis, where older versions take all axes from theirs on together.

    Softmax <axis = -1> (x)  ->  Softmax <axis = rank - 1> (x)
    Softmax <axis = 1> (x)   ->  Transpose (Softmax <axis = rank - 1> (Transpose (x)))

The rank must be known.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.graph.values import dim_of
from rewrites.migration.step import Step

__all__ = ["last_axis"]


def last_axis(step: Step) -> Sequence[ir.Value] | None:
    """13 -> 12."""
    b, x, rank = step.builder, step.required(0), step.known_rank()
    axis = step.int_("axis", -1)
    axis += rank if axis < 0 else 0
    if all(dim_of(x, behind) == 1 for behind in range(axis + 1, rank)):
        return step.like(axis=axis)
    perm = [rank - 1 if i == axis else axis if i == rank - 1 else i for i in range(rank)]
    moved = step.like([b.op("Transpose", x, perm=perm)], axis=rank - 1)[0]
    return [b.op("Transpose", moved, perm=perm)]
