"""Reads axes, bounds and counts, which are attributes in older opsets and inputs in newer opsets."""

import enum
from dataclasses import dataclass
from typing import Final

import onnx_ir as ir

from rewrites.graph.values import const_array, const_scalar

__all__ = [
    "DYNAMIC",
    "Bound",
    "Dynamic",
    "SoftmaxSpec",
    "axes_are_input",
    "axes_of",
    "axis_of",
    "clip_bounds",
    "dropout_is_identity",
    "int_operand",
    "ints_operand",
    "keepdims",
    "softmax_spec",
]


class Dynamic(enum.Enum):
    """The type of ``DYNAMIC``, which marks an operand that is only known at run time."""

    DYNAMIC = "dynamic"


DYNAMIC: Final = Dynamic.DYNAMIC
"""Returned for an operand that is known only at run time."""

_INPUT_SINCE = {"Squeeze": 13, "Unsqueeze": 13, "ReduceSum": 13}
_REDUCE_INPUT_SINCE = 18


def axes_are_input(op_type: str, opset: int) -> bool:
    """Return True if ``op_type`` (Squeeze, Unsqueeze or Reduce*) has its axes as an input in ``opset``.

    This is the second input. In other opsets, the axes are an attribute.
    """
    return opset >= _INPUT_SINCE.get(op_type, _REDUCE_INPUT_SINCE)


def axes_of(node: ir.Node, opset: int, rank: int | None) -> tuple[int, ...] | Dynamic | None:
    """Return the axes of a Squeeze, Unsqueeze or Reduce* node; DYNAMIC if only known at run time.

    The axes are non-negative if ``rank``, the rank of the data, is known. If the node has no axes, return:

    * for a Squeeze, which then removes all axes of size 1: None
    * for a reduction with ``noop_with_empty_axes``: ``()``
    * for any other reduction: all axes, or None if ``rank`` is unknown
    """
    axes = ints_operand(node, 1) if axes_are_input(node.op_type, opset) else _axes_attribute(node)
    if isinstance(axes, Dynamic):
        return axes
    if not axes and node.op_type.startswith("Reduce"):
        if axes_are_input(node.op_type, opset) and node.attributes.get_int("noop_with_empty_axes", 0) != 0:
            return ()
        return None if rank is None else tuple(range(rank))
    if axes is None or rank is None:
        return axes
    full = rank + len(axes) if node.op_type == "Unsqueeze" else rank
    return tuple(axis + full if axis < 0 else axis for axis in axes)


def ints_operand(node: ir.Node, index: int) -> tuple[int, ...] | Dynamic | None:
    """Return the integers of the constant input ``index`` as a flat tuple.

    Return None if the input is absent, and DYNAMIC if it is not a constant of integers.
    """
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None:
        return None
    array = const_array(value)
    if array is None or array.dtype.kind not in "iu":
        return DYNAMIC
    return tuple(int(item) for item in array.reshape(-1))


def int_operand(node: ir.Node, index: int) -> int | Dynamic | None:
    """Return the integer of the constant input ``index``.

    Return None if the input is absent, and DYNAMIC if it is not a constant of one integer.
    """
    numbers = ints_operand(node, index)
    if numbers is None or isinstance(numbers, Dynamic):
        return numbers
    return numbers[0] if len(numbers) == 1 else DYNAMIC


def axis_of(node: ir.Node, default: int, rank: int | None = None) -> int:
    """Return the ``axis`` attribute. It is non-negative if ``rank`` is known."""
    axis = node.attributes.get_int("axis", default)
    return axis + rank if axis < 0 and rank is not None else axis


def keepdims(node: ir.Node) -> bool:
    """Return True if a reduction (or ArgMax, ArgMin) keeps the reduced axes with size 1."""
    return bool(node.attributes.get_int("keepdims", 1))


def _axes_attribute(node: ir.Node) -> tuple[int, ...] | None:
    axes = node.attributes.get_ints("axes")
    return None if axes is None else tuple(axes)


Bound = ir.Value | float | None
"""A bound of a Clip: a number (an attribute), a value (an input), or None if absent."""


def clip_bounds(node: ir.Node, opset: int) -> tuple[Bound, Bound]:
    """Return the lower and the upper bound of a Clip."""
    if opset < 11:
        return node.attributes.get_float("min"), node.attributes.get_float("max")
    inputs = [*node.inputs, None, None]
    return inputs[1], inputs[2]


def dropout_is_identity(node: ir.Node, opset: int) -> bool:
    """Return True if a Dropout is known to return its input.

    Before opset 12, it always does. From opset 12 on, it does if ``training_mode`` is absent or false.
    """
    if opset < 12 or len(node.inputs) < 3 or node.inputs[2] is None:
        return True
    return const_scalar(node.inputs[2]) is False


@dataclass(frozen=True)
class SoftmaxSpec:
    """The axis of a Softmax, LogSoftmax or Hardmax.

    ``flattens``: True if the operator flattens all axes from ``axis`` on to one axis (before opset 13).
    """

    axis: int
    flattens: bool


def softmax_spec(node: ir.Node, opset: int, rank: int | None = None) -> SoftmaxSpec:
    """Read a Softmax, LogSoftmax or Hardmax. ``axis`` is non-negative if ``rank`` is known."""
    flattens = opset < 13
    return SoftmaxSpec(axis_of(node, 1 if flattens else -1, rank), flattens)
