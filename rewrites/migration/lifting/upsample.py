"""Upsample: scales become a list in version 7, an input in version 9, and the operator becomes Resize in version 10.

1 -> 7   Upsample <height_scale = 2, width_scale = 3> (x)  ->  Upsample <scales = [1, 1, 2, 3]> (x)
7 -> 9   Upsample <scales = [1, 1, 2, 3]> (x)              ->  Upsample (x, [1, 1, 2, 3])
9 -> 10  Upsample (x, scales)                              ->  Resize (x, scales)
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.migration.step import Step

__all__ = ["become_resize", "scales_for_each_axis", "scales_to_input"]


def scales_for_each_axis(step: Step) -> Sequence[ir.Value] | None:
    """1 -> 7."""
    scales = [1.0, 1.0, step.float_("height_scale") or 1.0, step.float_("width_scale") or 1.0]
    mode = "linear" if step.string("mode", "nearest") == "bilinear" else step.string("mode", "nearest")
    return step.like(height_scale=None, width_scale=None, scales=scales, mode=mode)


def scales_to_input(step: Step) -> Sequence[ir.Value] | None:
    """7 -> 9."""
    scales = step.builder.const(np.asarray(step.floats("scales") or [], np.float32))
    return step.like([step.required(0), scales], scales=None)


def become_resize(step: Step) -> Sequence[ir.Value] | None:
    """9 -> 10."""
    return step.become("Resize")
