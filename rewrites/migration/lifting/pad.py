"""Pad renames ``paddings`` in version 2; pads and value become inputs in version 11.

1 -> 2   Pad <paddings = [0, 1]> (x)           ->  Pad <pads = [0, 1]> (x)
2 -> 11  Pad <pads = [0, 1], value = 2.0> (x)  ->  Pad (x, [0, 1], 2.0)
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step

__all__ = ["pads_to_inputs", "rename_paddings"]


def rename_paddings(step: Step) -> Sequence[ir.Value] | None:
    """1 -> 2."""
    return step.like(paddings=None, pads=step.ints("paddings") or [])


def pads_to_inputs(step: Step) -> Sequence[ir.Value] | None:
    """2 -> 11."""
    inputs = [step.required(0), step.builder.const(step.ints("pads") or [])]
    value = step.float_("value")
    if value:
        inputs.append(step.scalar(value, step.dtype()))
    return step.like(inputs, pads=None, value=None)
