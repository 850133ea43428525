"""Axes become an input: Squeeze, Unsqueeze and ReduceSum in version 13, the other reductions in version 18.

ReduceMean <axes = [1]> (x)  ->  ReduceMean (x, [1])
Squeeze <axes = []> (x)      ->  Squeeze (x)             (the same: all axes of size 1; all axes for a reduction)
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step

__all__ = ["axes_to_input"]


def axes_to_input(step: Step) -> Sequence[ir.Value] | None:
    """Move the attribute ``axes`` to the second input."""
    axes = step.ints("axes")
    if axes is None:
        return None
    x = step.required(0)
    inputs = [x, step.builder.const(axes)] if axes or step.node.op_type == "Unsqueeze" else [x]
    return step.like(inputs, axes=None)
