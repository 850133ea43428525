"""The transfer functions of integers in a body. Each returns an affine expression of the step number.

Each function gets a node, and returns the expression of the node's result, or None if it is unknown.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import EXACT, INTEGERS, LARGEST, AffineExpression, at_least, concatenated
from rewrites.analysis.induction.integer_domain import IntegerDomain
from rewrites.graph.values import producer_of, static_dims
from rewrites.ops.element_moves import movement
from rewrites.ops.versions import axis_of, clip_bounds

__all__ = ["Integers"]


def _cast(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of a Cast: the elements of its operand, with the limit of the new type."""
    data, to = integers.operand(node, 0), ir.DataType(node.attributes["to"].as_int())
    if data is None or (to not in EXACT and to not in INTEGERS):
        return None
    return data.with_exact_limit(EXACT.get(to))


def _arithmetic(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of an Add, Sub or Mul."""
    left, right = integers.operand(node, 0), integers.operand(node, 1)
    if left is None or right is None:
        return None
    return left + right if node.op_type == "Add" else left - right if node.op_type == "Sub" else left * right


def _divided(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of a Div by 1 or -1, or of integers by a number that is known to be larger."""
    left, right = integers.operand(node, 0), integers.scalar(node.inputs[1])
    if left is None or right is None or right.number in (1, -1):
        return None if left is None or right is None else left * right
    rounds_down = node.inputs[0] is not None and node.inputs[0].dtype in INTEGERS
    return left * 0 if rounds_down and _is_index(integers, left, right) else None


def _remainder(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of a Mod: its first operand, if the second is known to be larger."""
    left, right = integers.operand(node, 0), integers.scalar(node.inputs[1])
    return left if left is not None and right is not None and _is_index(integers, left, right) else None


def _negated(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of a Neg."""
    data = integers.operand(node, 0)
    return None if data is None else -data


def _unchanged(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of a Ceil or Floor: integers stay as they are."""
    return integers.operand(node, 0)


def _min_or_max(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of a Min or Max.

    One operand must be known to be the smallest or largest in all steps. Its expression is the result.
    """
    parts = [part for value in node.inputs if (part := integers.of(value)) is not None]
    return _extreme(integers, parts, node.op_type == "Max") if len(parts) == len(node.inputs) else None


def _clipped(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of a Clip, if each bound is known to be either kept or exceeded in all steps.

    The result is the expression of the data if they keep both bounds. Otherwise, it is the expression of the exceeded bound.
    """
    data = integers.operand(node, 0)
    low, high = clip_bounds(node, integers.opset)
    for bound, is_max in ((low, True), (high, False)):
        if bound is not None and data is not None:
            limit = integers.of(bound) if isinstance(bound, ir.Value) else _integer_constant(bound)
            data = None if limit is None else _extreme(integers, [data, limit], is_max)
    return data


def _integer_constant(bound: float) -> AffineExpression | None:
    return AffineExpression.of(int(bound)) if float(bound).is_integer() else None


def _extreme(integers: IntegerDomain, parts: list[AffineExpression], is_max: bool) -> AffineExpression | None:
    for part in parts:
        others = [part - other if is_max else other - part for other in parts if other is not part]
        if all(at_least(other, 0, integers.steps) for other in others):
            shape = np.broadcast_shapes(*(each.shape for each in parts))
            return part.rearranged(partial(np.broadcast_to, shape=shape))
    return None


def _selected(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of a Where: the operand that its condition is known to select in all steps."""
    condition, holds = node.inputs[0], integers.truth_in_all_steps(node.inputs[0])
    dims = None if condition is None or holds is None else static_dims(condition)
    sides = [integers.operand(node, 1), integers.operand(node, 2)]
    side, other = sides if holds else reversed(sides)
    if side is None or other is None or dims is None:
        return None
    shape = np.broadcast_shapes(side.shape, other.shape, dims)
    return side.rearranged(partial(np.broadcast_to, shape=shape))


def _range(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of a Range whose length is known."""
    start, limit, by = (integers.scalar(value) for value in node.inputs)
    wide = None if start is None or limit is None else (limit - start).number
    step = None if by is None else by.number
    if start is None or wide is None or not step or abs(wide) > LARGEST or (start.terms and start.exact_to is not None):
        return None
    numbers = np.arange(0, wide, step, dtype=np.int64)
    return start.rearranged(partial(np.broadcast_to, shape=numbers.shape)) + AffineExpression.of(numbers)


def _shape(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of a Shape; None if one of the sizes may vary between steps."""
    source = node.inputs[0]
    if source is None or source.shape is None:
        return None
    axes = range(len(source.shape))[node.attributes.get_int("start", 0) : node.attributes.get_int("end")]
    dims = [dim for axis in axes if (dim := integers.size_of(source, axis)) is not None]
    if len(dims) < len(axes):
        return None
    return concatenated([dim.reshaped((1,)) for dim in dims], 0) if dims else AffineExpression.of(np.zeros(0, np.int64))


def _element_count(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of a Size; None if more than one dimension is not a constant number."""
    dims, product = _shape(integers, node), AffineExpression.of(1)
    for i in range(0 if dims is None else dims.const.size):
        assert dims is not None
        product = product * dims.element(i)  # a product of two symbols raises ValueError, so the size is unknown
    return None if dims is None else product


def _gather(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of a Gather.

    There are two supported cases: the indices are constant; or the data are evenly spaced constants, or a Range with step 1, and
    each index is an expression within their range. For example, ``Gather([1, 3, 5], step)`` is ``2 * step + 1``.
    """
    data, indices = integers.operand(node, 0), integers.operand(node, 1)
    if indices is None:
        return None
    if data is None:
        return _from_range(integers, node, indices)
    if indices.numbers is not None:
        return _rearranged(integers, node)
    if data.numbers is None or data.const.ndim != 1 or data.const.size < 2:
        return None
    start, step = int(data.const[0]), int(data.const[1] - data.const[0])
    is_even = (data.const == start + step * np.arange(data.const.size).astype(object)).all()
    return indices * step + start if is_even and _is_index(integers, indices, AffineExpression.of(data.const.size)) else None


def _from_range(integers: IntegerDomain, node: ir.Node, indices: AffineExpression) -> AffineExpression | None:
    producer = producer_of(node.inputs[0], "Range")
    if producer is None or producer.graph is integers.body:
        return None
    start, limit, step = (integers.scalar(value) for value in producer.inputs)
    if start is None or limit is None or step is None or step.number != 1:
        return None
    return start + indices if _is_index(integers, indices, limit - start) else None


def _is_index(integers: IntegerDomain, indices: AffineExpression, size: AffineExpression) -> bool:
    """Return True if ``indices`` are known to be at least 0 and less than ``size`` in all steps."""
    return at_least(indices, 0, integers.steps) and at_least(size - indices, 1, integers.steps)


def _rearranged(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of a node that only rearranges elements, such as a Transpose or a Slice.

    All operands except the data must be constant.
    """
    data = integers.operand(node, 0)
    if data is None:
        return None
    map_of = movement(node, integers.opset, data.shape, partial(_constant_operand, integers, node))
    if map_of is None or map_of.apply([np.broadcast_to(False, data.shape)])[0].size > LARGEST:
        return None
    return data.rearranged(lambda array: map_of.apply([array])[0])


def _constant_operand(integers: IntegerDomain, node: ir.Node, index: int) -> np.ndarray | None:
    operand = integers.operand(node, index)
    return None if operand is None else operand.numbers


def _concatenated(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of a Concat."""
    parts = [integers.of(value) for value in node.inputs]
    known = [part for part in parts if part is not None and part.const.ndim]
    return concatenated(known, axis_of(node, 0)) if len(known) == len(parts) else None


def _tiled(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the expression of a Tile with constant repeats."""
    data, repeats = integers.operand(node, 0), integers.operand(node, 1)
    times = None if repeats is None else repeats.numbers
    if data is None or times is None or len(times) != data.const.ndim or data.const.size * int(np.prod(times)) > LARGEST:
        return None
    return data.rearranged(partial(np.tile, reps=tuple(int(number) for number in times)))


_TRANSFER: Mapping[str, Callable[[IntegerDomain, ir.Node], AffineExpression | None]] = {
    **dict.fromkeys(("Add", "Mul", "Sub"), _arithmetic),
    **dict.fromkeys(("Expand", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"), _rearranged),
    "Cast": _cast,
    **dict.fromkeys(("Ceil", "Floor"), _unchanged),
    "Clip": _clipped,
    "Concat": _concatenated,
    "Div": _divided,
    "Gather": _gather,
    "Max": _min_or_max,
    "Min": _min_or_max,
    "Mod": _remainder,
    "Neg": _negated,
    "Range": _range,
    "Shape": _shape,
    "Size": _element_count,
    "Tile": _tiled,
    "Where": _selected,
}


class Integers(IntegerDomain):
    """Computes the affine expressions of the integers in a body, or outside of loops."""

    transfer = _TRANSFER
