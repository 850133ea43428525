"""The operands of Slice become inputs in version 10.

Slice <starts = [1], ends = [3], axes = [0]> (x)  ->  Slice (x, [1], [3], [0])
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step

__all__ = ["operands_to_inputs"]


def operands_to_inputs(step: Step) -> Sequence[ir.Value] | None:
    """Move starts, ends and axes to the inputs."""
    const = step.builder.const
    inputs = [step.required(0), const(step.ints("starts") or []), const(step.ints("ends") or [])]
    axes = step.ints("axes")
    if axes:
        inputs.append(const(axes))
    return step.like(inputs, starts=None, ends=None, axes=None)
