"""Refuses nodes that look the same in two versions of their operator, but compute something else.

    28  BitShift              by the number of bits of the type, or more; the shift must be known to be smaller
    28  Mod                   floor division of floats
    28  ReduceLogSum          integers, which it supports only up to version 18
    28  ReduceLogSumExp       not lifted; to a lower opset it becomes Log (ReduceSum (Exp (x), axes))
    25  Attention             scores after the mask, if they are read
    19  Pad, Resize           the mode "wrap", the coordinates "half_pixel_symmetric"
    18  ScatterElements, -ND  the reductions "min" and "max"
    13  Quantize-, DequantizeLinear   a scale for each element of an axis; the scale must be known to have one element

Up to opset 27, onnxruntime runs ReduceLogSumExp by a kernel that subtracts the maximum first. From opset 28 on, it expands the
operator to a function without this subtraction. In float32, the function overflows above 88 and returns -inf below -103, so a
hidden Markov model of some hundred steps returns only NaN. No other nodes compute exactly the same as the kernel, because the
kernel finds the maximum in another way if the first number is not finite.

Attention has a similar difference. For masked positions, the kernel up to opset 24 returns finite scores, and the function that
onnxruntime uses later returns -inf.

Works around ORT-LOG-SUM-EXP-28 and ORT-ATTENTION-SCORES.
"""

import math

from rewrites.graph.values import static_dims
from rewrites.migration.step import Rule, Step, Unconvertible, Written
from rewrites.migration.versions import check_types, schema_of

__all__ = ["LIFTING", "LOWERING"]

_AFTER_MASK = 2
_SCORES = 3


def _refuse(step: Step) -> None:
    """Refuse every node, because the previous version is a different operator."""
    raise Unconvertible("the previous version means something else")


def _older_mode(step: Step) -> None:
    if step.string("mode", "constant") == "wrap":
        raise Unconvertible("it has no mode 'wrap' before opset 19")


def _older_coordinates(step: Step) -> None:
    if step.string("coordinate_transformation_mode", "half_pixel") == "half_pixel_symmetric":
        raise Unconvertible("it has no coordinates 'half_pixel_symmetric' before opset 19")


def _older_reduction(step: Step) -> None:
    if (reduction := step.string("reduction", "none")) in ("min", "max"):
        raise Unconvertible(f"it has no reduction '{reduction}' before opset 18")


def _single_scale(step: Step) -> None:
    dims = static_dims(step.required(1))
    if dims is None or math.prod(dims) != 1:
        raise Unconvertible("it has one scale for the whole tensor before opset 13")


def _shift_within_width(step: Step) -> None:
    by = step.constant(1, "numbers of bits")
    if by is not None and by.size and int(by.max()) >= 8 * by.dtype.itemsize:
        raise Unconvertible("it shifts by the number of bits of its type, or more, which is undefined before opset 28")


def _remainder_of_its_kind(step: Step) -> None:
    if step.int_("fmod", 0):
        return
    if step.dtype().is_floating_point():
        raise Unconvertible("it computes the remainder of a floor division of floats, which needs opset 28")


def _refuse_masked_scores(step: Step) -> None:
    outputs = step.node.outputs
    if len(outputs) > _SCORES and outputs[_SCORES].name and step.int_("qk_matmul_output_mode", 0) == _AFTER_MASK:
        raise Unconvertible("onnxruntime returns other scores for masked positions from opset 25 on")


def _refuse_types_left_out(step: Step) -> None:
    """Refuse to convert ReduceLogSum from version 18 to 28 if version 28 lacks its element type."""
    schema = schema_of(step.node.op_type, step.builder.opset)
    assert schema is not None
    check_types(step.node, schema)


def _refuse_overflow(_step: Step) -> None:
    raise Unconvertible("in onnxruntime it overflows from opset 28 on; opset 27 is the newest that computes the same")


def _log_of_summed_powers(step: Step) -> Written:
    b, noop = step.builder, step.int_("noop_with_empty_axes", 0)
    powers = b.op("Exp", step.required(0))
    total = b.op("ReduceSum", powers, step.value(1), keepdims=step.int_("keepdims", 1), noop_with_empty_axes=noop)
    return [b.op("Log", total)]


LIFTING: dict[tuple[str, int], Rule] = {
    ("Attention", 25): _refuse_masked_scores,
    ("ReduceLogSum", 28): _refuse_types_left_out,
    ("ReduceLogSumExp", 28): _refuse_overflow,
}

LOWERING: dict[tuple[str, int], Rule] = {
    ("Attention", 25): _refuse_masked_scores,
    ("BitShift", 28): _shift_within_width,
    ("DequantizeLinear", 13): _single_scale,
    ("GroupNormalization", 21): _refuse,
    ("Mod", 28): _remainder_of_its_kind,
    ("Pad", 19): _older_mode,
    ("QuantizeLinear", 13): _single_scale,
    ("ReduceLogSumExp", 28): _log_of_summed_powers,
    ("Resize", 19): _older_coordinates,
    ("Scan", 9): _refuse,
    ("ScatterElements", 18): _older_reduction,
    ("ScatterND", 18): _older_reduction,
}
