"""Refuse nodes whose two versions are spelt alike but compute something else.

    28  BitShift              by as many bits as the type has, or more; the number must be known to be less
    28  Mod                   floor division of floats
    28  ReduceLogSum          integers, which it takes up to version 18 only
    28  ReduceLogSumExp       not taken up; on the way down it becomes Log (ReduceSum (Exp (x), axes))
    25  Attention             scores that are read after the mask
    19  Pad, Resize           the mode "wrap", the coordinates "half_pixel_symmetric"
    18  ScatterElements, -ND  the reductions "min" and "max"
    13  Quantize-, DequantizeLinear   a scale for each element of an axis; the scale must be known to be a single one

onnxruntime has a kernel for ReduceLogSumExp up to opset 27, which subtracts a maximum first. From opset 28 on it expands the
function of the operator's text, which overflows above 88 and gives -inf below -103 in float32. An HMM of some hundred steps then
gives only NaN. No other nodes compute exactly what the kernel does, because its maximum depends on whether the first number is
finite. Likewise, it has a kernel for Attention up to opset 24, in which the scores of masked positions are finite; in the function
they are -inf.

Works round ORT-LOG-SUM-EXP-28 and ORT-ATTENTION-SCORES.
"""

import math

from rewrites.graph.values import static_dims
from rewrites.migration.step import Step, Unconvertible, Written
from rewrites.migration.versions import check_types, schema_of

__all__ = [
    "log_of_summed_powers",
    "older_coordinates",
    "older_mode",
    "older_reduction",
    "refuse",
    "refuse_masked_scores",
    "refuse_overflow",
    "refuse_types_left_out",
    "remainder_of_its_kind",
    "shift_within_width",
    "single_scale",
]

_AFTER_MASK = 2
_SCORES = 3


def refuse(step: Step) -> None:
    """Refuse every node."""
    raise Unconvertible("the version before it means something else")


def older_mode(step: Step) -> None:
    """Pad: 19 -> 18."""
    if step.string("mode", "constant") == "wrap":
        raise Unconvertible("it has no mode 'wrap' before opset 19")


def older_coordinates(step: Step) -> None:
    """Resize: 19 -> 18."""
    if step.string("coordinate_transformation_mode", "half_pixel") == "half_pixel_symmetric":
        raise Unconvertible("it has no coordinates 'half_pixel_symmetric' before opset 19")


def older_reduction(step: Step) -> None:
    """ScatterElements, ScatterND: 18 -> 17."""
    if (reduction := step.string("reduction", "none")) in ("min", "max"):
        raise Unconvertible(f"it has no reduction '{reduction}' before opset 18")


def single_scale(step: Step) -> None:
    """QuantizeLinear, DequantizeLinear: 13 -> 12."""
    dims = static_dims(step.required(1))
    if dims is None or math.prod(dims) != 1:
        raise Unconvertible("it has one scale for the whole tensor before opset 13")


def shift_within_width(step: Step) -> None:
    """BitShift: 28 -> 27."""
    by = step.constant(1, "numbers of bits")
    if by is not None and by.size and int(by.max()) >= 8 * by.dtype.itemsize:
        raise Unconvertible("it shifts by as many bits as its type has, or more, which has no meaning before opset 28")


def remainder_of_its_kind(step: Step) -> None:
    """Mod: 28 -> 27."""
    if step.int_("fmod", 0):
        return
    if step.dtype().is_floating_point():
        raise Unconvertible("it takes the remainder of floor division of floats, which no opset before 28 does")


def refuse_masked_scores(step: Step) -> None:
    """Attention: 24 -> 25 and 25 -> 24."""
    outputs = step.node.outputs
    if len(outputs) > _SCORES and outputs[_SCORES].name and step.int_("qk_matmul_output_mode", 0) == _AFTER_MASK:
        raise Unconvertible("onnxruntime gives other scores for masked positions from opset 25 on than before")


def refuse_types_left_out(step: Step) -> None:
    """ReduceLogSum, 18 -> 28: refuse element types that the newer version does not take."""
    schema = schema_of(step.node.op_type, step.builder.opset)
    assert schema is not None
    check_types(step.node, schema)


def refuse_overflow(_step: Step) -> None:
    """ReduceLogSumExp: 27 -> 28."""
    raise Unconvertible("onnxruntime lets it overflow from opset 28 on; opset 27 is the newest that computes the same")


def log_of_summed_powers(step: Step) -> Written:
    """ReduceLogSumExp: 28 -> 27."""
    b, noop = step.builder, step.int_("noop_with_empty_axes", 0)
    powers = b.op("Exp", step.required(0))
    total = b.op("ReduceSum", powers, step.value(1), keepdims=step.int_("keepdims", 1), noop_with_empty_axes=noop)
    return [b.op("Log", total)]
