"""What a newer version takes beyond the older one although both are spelt alike: refused where a node makes use of it.

Max, Min, Mean, Sum   operands of different shapes (8); they have to be known to be equal
Pad                   the mode "wrap" (19)
Resize                the coordinates "half_pixel_symmetric" (19)
ScatterElements, -ND  the reductions "min" and "max" (18)
BitShift              as many bits as the type has, or more (28); the number has to be known to be less
Mod                   floor division of floats (28)
Quantize-, DequantizeLinear   one scale for each element of an axis (13); the scale has to be known to be a single one
"""

import math

from rewrites.graph.values import static_dims
from rewrites.migration.step import Step
from rewrites.migration.unconvertible import NotKnownHere, Unconvertible

__all__ = [
    "equal_shapes",
    "older_coordinates",
    "older_mode",
    "older_reduction",
    "remainder_of_its_kind",
    "shift_within_width",
    "single_scale",
]


def equal_shapes(step: Step) -> None:
    """Max, Min, Mean, Sum: 8 -> 7."""
    shapes = {None if value is None or value.shape is None else tuple(map(str, value.shape)) for value in step.node.inputs}
    if len(step.node.inputs) > 1 and (len(shapes) > 1 or any("None" in (shape or ("None",)) for shape in shapes)):
        raise NotKnownHere("its operands are not known to have the same shape")


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
