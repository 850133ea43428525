"""Axes are not negative before version 11.

    Concat <axis = -1> (x, y)  ->  Concat <axis = 1> (x, y)      (rank 2)

The rank must be known where an axis is negative.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step

__all__ = ["COUNTED_FROM_THE_FRONT", "count_from_the_front"]

_WITH_AXIS = ("ArgMax", "ArgMin", "Compress", "Concat", "Flatten", "Gather", "Split")
_WITH_AXES = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

COUNTED_FROM_THE_FRONT = (
    *_WITH_AXIS,
    "Hardmax",
    "LogSoftmax",
    "Softmax",
    "Squeeze",
    "Unsqueeze",
    *(f"Reduce{x}" for x in _WITH_AXES),
)
"""The operators whose axes may be negative from version 11 on."""


def count_from_the_front(step: Step) -> Sequence[ir.Value] | None:
    """11 -> 10."""
    changed: dict[str, int | list[int]] = {}
    if step.has("axis") and (axis := step.int_("axis", 0)) < 0:
        changed["axis"] = axis + step.known_rank()
    axes = step.ints("axes")
    if axes and min(axes) < 0:
        rank = step.known_rank() + (len(axes) if step.node.op_type == "Unsqueeze" else 0)
        changed["axes"] = [axis + rank if axis < 0 else axis for axis in axes]
    return step.like(None, **changed) if changed else None
