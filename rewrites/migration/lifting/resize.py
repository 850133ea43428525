"""Resize says in version 11 which coordinates it means, and in version 13 its region and scales may be absent.

    10 -> 11  Resize <mode> (x, scales)          ->  Resize <mode, asymmetric, floor | ceil> (x, [], scales)
    11 -> 13  Resize (x, [], [], sizes)          ->  Resize (x, , , sizes)

Version 10 takes the element at ``position / scale``, rounded down where it enlarges and up where it shrinks; a node that does
both, or whose scales are not constant, becomes two nodes, that enlarge by ``max(scales, 1)`` and shrink by ``min(scales, 1)``.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_array
from rewrites.migration.step import Step
from rewrites.migration.unconvertible import Unconvertible

__all__ = ["leave_out_empty", "say_coordinates"]

_ASYMMETRIC = "asymmetric"


def say_coordinates(step: Step) -> Sequence[ir.Value] | None:
    """10 -> 11."""
    b, x, scales = step.builder, step.required(0), step.required(1)
    region = b.const(np.zeros(0, np.float32))
    mode = step.string("mode", "nearest")
    down, up = ("floor", "ceil") if mode == "nearest" else (None, None)
    known = const_array(scales)
    if mode != "nearest" or (known is not None and (known >= 1).all()):
        return step.like([x, region, scales], coordinate_transformation_mode=_ASYMMETRIC, nearest_mode=down)
    if known is not None and (known <= 1).all():
        return step.like([x, region, scales], coordinate_transformation_mode=_ASYMMETRIC, nearest_mode=up)
    larger, smaller = _parts(step, scales, known)
    grown = b.op("Resize", x, region, larger, mode=mode, coordinate_transformation_mode=_ASYMMETRIC, nearest_mode=down)
    return step.like([grown, region, smaller], coordinate_transformation_mode=_ASYMMETRIC, nearest_mode=up)


def leave_out_empty(step: Step) -> Sequence[ir.Value] | None:
    """11 -> 13."""
    if step.string("coordinate_transformation_mode", "half_pixel") == "tf_half_pixel_for_nn":
        raise Unconvertible("its coordinates are 'tf_half_pixel_for_nn', which opset 13 took away")
    inputs = [step.required(0), *(_unless_empty(step.value(index)) for index in (1, 2)), step.value(3)]
    return step.like(inputs) if inputs != [step.value(index) for index in range(4)] else None


def _parts(step: Step, scales: ir.Value, known: np.ndarray | None) -> tuple[ir.Value, ir.Value]:
    if known is not None:
        one = np.ones_like(known)
        return step.builder.const(np.maximum(known, one)), step.builder.const(np.minimum(known, one))
    one_ = step.builder.const(np.ones(1, np.float32))
    return step.builder.op("Max", scales, one_), step.builder.op("Min", scales, one_)


def _unless_empty(value: ir.Value | None) -> ir.Value | None:
    array = const_array(value)
    return None if array is not None and array.size == 0 else value
