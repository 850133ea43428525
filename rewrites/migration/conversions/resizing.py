"""Converts Resize and Upsample.

    7    Upsample <height_scale = 2, width_scale = 3> (x)   ->  Upsample <scales = [1, 1, 2, 3]> (x)
    9    Upsample <scales = [1, 1, 2, 3]> (x)              <->  Upsample (x, [1, 1, 2, 3])
    10   Upsample (x, scales)                              <->  Resize (x, scales)
    11   Resize <mode> (x, scales)                         <->  Resize <mode, asymmetric, floor | ceil> (x, [], scales)
    13   Resize (x, [], [], sizes)                         <->  Resize (x, , , sizes)

In version 10, the mode "nearest" reads the element at ``position / scale``. This number is rounded down along an axis that the node
enlarges, and up along an axis that it shrinks. A node of version 11 rounds in only one way. So a node that enlarges some axes and
shrinks others, or whose scales are not constant, becomes two nodes: one enlarges by ``max(scales, 1)``, and one shrinks by
``min(scales, 1)``. To convert this mode to version 10, the scales must be constant. Upsample can only enlarge.
"""

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_array
from rewrites.migration.step import Rule, Step, Unconvertible, Written

__all__ = ["LIFTING", "LOWERING"]

_ASYMMETRIC = "asymmetric"


def _scales_for_each_axis(step: Step) -> Written:
    scales = [1.0, 1.0, step.float_("height_scale") or 1.0, step.float_("width_scale") or 1.0]
    mode = "linear" if step.string("mode", "nearest") == "bilinear" else step.string("mode", "nearest")
    return step.rewrite_with(height_scale=None, width_scale=None, scales=scales, mode=mode)


def _scales_to_input(step: Step) -> Written:
    scales = step.builder.const(np.asarray(step.floats("scales") or [], np.float32))
    return step.rewrite_with([step.required(0), scales], scales=None)


def _scales_to_attribute(step: Step) -> Written:
    scales = step.constant(1, "scales")
    return step.rewrite_with([step.required(0)], scales=[] if scales is None else [float(scale) for scale in scales])


def _become_upsample(step: Step) -> Written:
    scales = step.constant(1, "scales")
    if scales is None or (scales < 1).any():
        raise Unconvertible("Upsample cannot shrink")
    return step.rewrite_as("Upsample")


def _add_coordinates(step: Step) -> Written:
    b, x, scales = step.builder, step.required(0), step.required(1)
    region = b.const(np.zeros(0, np.float32))
    mode = step.string("mode", "nearest")
    down, up = ("floor", "ceil") if mode == "nearest" else (None, None)
    known = const_array(scales)
    if mode != "nearest" or (known is not None and (known >= 1).all()):
        return step.rewrite_with([x, region, scales], coordinate_transformation_mode=_ASYMMETRIC, nearest_mode=down)
    if known is not None and (known <= 1).all():
        return step.rewrite_with([x, region, scales], coordinate_transformation_mode=_ASYMMETRIC, nearest_mode=up)
    if known is not None:
        larger, smaller = b.const(np.maximum(known, np.ones_like(known))), b.const(np.minimum(known, np.ones_like(known)))
    else:
        unit = b.const(np.ones(1, np.float32))
        larger, smaller = b.op("Max", scales, unit), b.op("Min", scales, unit)
    grown = b.op("Resize", x, region, larger, mode=mode, coordinate_transformation_mode=_ASYMMETRIC, nearest_mode=down)
    return step.rewrite_with([grown, region, smaller], coordinate_transformation_mode=_ASYMMETRIC, nearest_mode=up)


def _drop_coordinates(step: Step) -> Written:
    mode, scales = step.string("mode", "nearest"), const_array(step.value(2))
    nearest = step.string("nearest_mode", "round_prefer_floor")
    asymmetric = step.string("coordinate_transformation_mode", "half_pixel") == _ASYMMETRIC
    enlarges = nearest == "floor" and scales is not None and (scales >= 1).all()
    shrinks = nearest == "ceil" and scales is not None and (scales <= 1).all()
    if not asymmetric or step.value(3) is not None or not (mode == "linear" or (mode == "nearest" and (enlarges or shrinks))):
        raise Unconvertible("opset 10 does not have its coordinates, rounding or mode")
    gone = dict.fromkeys(("coordinate_transformation_mode", "nearest_mode", "cubic_coeff_a", "extrapolation_value"))
    return step.rewrite_with([step.required(0), step.required(2)], exclude_outside=None, **gone)


def _omit_empty_inputs(step: Step) -> Written:
    if step.string("coordinate_transformation_mode", "half_pixel") == "tf_half_pixel_for_nn":
        raise Unconvertible("its coordinates are 'tf_half_pixel_for_nn', which opset 13 removed")
    inputs = [step.required(0), *(_none_if_empty(step.value(index)) for index in (1, 2)), step.value(3)]
    return step.rewrite_with(inputs) if inputs != [step.value(index) for index in range(4)] else None


def _add_empty_inputs(step: Step) -> Written:
    empty = step.builder.const(np.zeros(0, np.float32))
    return step.rewrite_with([step.required(0), step.value(1) or empty, step.value(2) or empty, step.value(3)])


def _none_if_empty(value: ir.Value | None) -> ir.Value | None:
    array = const_array(value)
    return None if array is not None and array.size == 0 else value


LIFTING: dict[tuple[str, int], Rule] = {
    ("Resize", 11): _add_coordinates,
    ("Resize", 13): _omit_empty_inputs,
    ("Upsample", 7): _scales_for_each_axis,
    ("Upsample", 9): _scales_to_input,
    ("Upsample", 10): lambda step: step.rewrite_as("Resize"),
}

LOWERING: dict[tuple[str, int], Rule] = {
    ("Resize", 10): _become_upsample,
    ("Resize", 11): _drop_coordinates,
    ("Resize", 13): _add_empty_inputs,
    ("Upsample", 9): _scales_to_attribute,
}
