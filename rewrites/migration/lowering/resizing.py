"""Resize on its way down: region and scales are always there, coordinates are not said, the name is Upsample.

    13 -> 12  Resize (x, , , sizes)                            ->  Resize (x, [], [], sizes)
    11 -> 10  Resize <asymmetric, floor> (x, [], [1, 1, 2, 2]) ->  Resize (x, [1, 1, 2, 2])
    10 -> 9   Resize (x, [1, 1, 2, 2])                         ->  Upsample (x, [1, 1, 2, 2])
    9 -> 8    Upsample (x, [1, 1, 2, 2])                       ->  Upsample <scales = [1, 1, 2, 2]> (x)

Version 10 rounds down where it enlarges and up where it shrinks, so that nearest neighbours need constant scales; Upsample only
enlarges.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_array
from rewrites.migration.step import Step
from rewrites.migration.unconvertible import Unconvertible

__all__ = ["become_upsample", "drop_coordinates", "fill_in_empty", "scales_to_attribute"]


def fill_in_empty(step: Step) -> Sequence[ir.Value] | None:
    """13 -> 12."""
    empty = step.builder.const(np.zeros(0, np.float32))
    return step.like([step.required(0), step.value(1) or empty, step.value(2) or empty, step.value(3)])


def drop_coordinates(step: Step) -> Sequence[ir.Value] | None:
    """11 -> 10."""
    mode, scales = step.string("mode", "nearest"), const_array(step.value(2))
    nearest = step.string("nearest_mode", "round_prefer_floor")
    asymmetric = step.string("coordinate_transformation_mode", "half_pixel") == "asymmetric"
    enlarges = nearest == "floor" and scales is not None and (scales >= 1).all()
    shrinks = nearest == "ceil" and scales is not None and (scales <= 1).all()
    if not asymmetric or step.value(3) is not None or not (mode == "linear" or (mode == "nearest" and (enlarges or shrinks))):
        raise Unconvertible("opset 10 has no other coordinates, rounding or modes than its own")
    gone = dict.fromkeys(("coordinate_transformation_mode", "nearest_mode", "cubic_coeff_a", "extrapolation_value"))
    return step.like([step.required(0), step.required(2)], exclude_outside=None, **gone)


def become_upsample(step: Step) -> Sequence[ir.Value] | None:
    """10 -> 9."""
    scales = step.constant(1, "scales")
    if scales is None or (scales < 1).any():
        raise Unconvertible("Upsample cannot shrink")
    return step.become("Upsample")


def scales_to_attribute(step: Step) -> Sequence[ir.Value] | None:
    """Upsample: 9 -> 8."""
    scales = step.constant(1, "scales")
    return step.like([step.required(0)], scales=[] if scales is None else [float(scale) for scale in scales])
