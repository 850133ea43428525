"""The transfer functions of integers of a body, as affine expressions of the step number."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import EXACT, INTEGERS, LARGEST, AffineExpression, at_least, joined
from rewrites.analysis.induction.integer_domain import IntegerDomain
from rewrites.graph.values import static_dims
from rewrites.ops.element_moves import movement
from rewrites.ops.versions import axis_of, clip_bounds

__all__ = ["Integers"]


def _cast(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the elements in another numeric type."""
    data, to = integers.operand(node, 0), ir.DataType(node.attributes["to"].as_int())
    if data is None or (to not in EXACT and to not in INTEGERS):
        return None
    return data.limited(EXACT.get(to))


def _arithmetic(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return a sum, difference or product."""
    left, right = integers.operand(node, 0), integers.operand(node, 1)
    if left is None or right is None or (node.op_type == "Mul" and left.terms and right.terms):
        return None
    try:
        return left + right if node.op_type == "Add" else left - right if node.op_type == "Sub" else left * right
    except ValueError:
        return None


def _negated(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the negated elements."""
    data = integers.operand(node, 0)
    return None if data is None else -data


def _min_or_max(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the input of a Min or Max that surely is the smallest or largest."""
    parts = [integers.of(value) for value in node.inputs]
    return _extreme(integers, [part for part in parts if part is not None], node.op_type == "Max") if None not in parts else None


def _clipped(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the input of a Clip if it surely is within the bounds."""
    data = integers.operand(node, 0)
    low, high = clip_bounds(node, integers.opset)
    for bound, greatest in ((low, True), (high, False)):
        if bound is not None and data is not None:
            limit = integers.of(bound) if isinstance(bound, ir.Value) else _whole(bound)
            data = None if limit is None else _extreme(integers, [data, limit], greatest)
    return data


def _whole(bound: float) -> AffineExpression | None:
    return AffineExpression.of(int(bound)) if float(bound).is_integer() else None


def _extreme(integers: IntegerDomain, parts: list[AffineExpression], greatest: bool) -> AffineExpression | None:
    for part in parts:
        others = [part - other if greatest else other - part for other in parts if other is not part]
        if all(at_least(other, 0, integers.steps) for other in others):
            shape = np.broadcast_shapes(*(each.shape for each in parts))
            return part.moved(partial(np.broadcast_to, shape=shape))
    return None


def _chosen(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the selected side of a Where if the condition is known."""
    holds = integers.truth(node.inputs[0])
    if holds is None:
        return None
    side, other = (
        (integers.operand(node, 1), integers.operand(node, 2)) if holds else (integers.operand(node, 2), integers.operand(node, 1))
    )
    condition, value = node.inputs[0], node.inputs[1 if holds else 2]
    shapes = [None if operand is None else static_dims(operand) for operand in (condition, value)]
    if side is None or other is None or shapes[0] is None:
        return None
    shape = np.broadcast_shapes(side.shape, other.shape, shapes[0])
    return side.moved(lambda array: np.broadcast_to(array, shape))


def _range(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the numbers of a Range of known length."""
    start, limit, by = (integers.scalar(value) for value in node.inputs)
    wide = None if start is None or limit is None else (limit - start).number
    step = None if by is None else by.number
    if start is None or wide is None or not step or abs(wide) > LARGEST or (start.terms and start.exact_to is not None):
        return None
    numbers = np.arange(0, wide, step, dtype=np.int64)
    return AffineExpression.of(numbers) + start.moved(partial(np.broadcast_to, shape=numbers.shape))


def _shape(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the dimensions of the input of a Shape. Dimensions inside the body may change from step to step."""
    source = node.inputs[0]
    if source is None or source.shape is None:
        return None
    axes = range(len(source.shape))[node.attributes.get_int("start", 0) : node.attributes.get_int("end")]
    dims = [integers.dim(source, axis) for axis in axes]
    known = [dim for dim in dims if dim is not None]
    if not dims or len(known) < len(dims):
        return None if dims else AffineExpression.of(np.zeros(0, np.int64))
    return joined([dim.reshaped((1,)) for dim in known], 0)


def _element_count(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the size of the input of a Size, if all dimensions but one are numbers."""
    dims = _shape(integers, node)
    if dims is None:
        return None
    product = AffineExpression.of(1)
    for i in range(dims.const.size):
        part = dims.moved(partial(np.take, indices=i))
        if part.terms and product.terms:
            return None
        product = product * part
    return product


def _gather(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the selected elements of constants, or the element of an arithmetic progression at a variable index."""
    data, places = integers.operand(node, 0), integers.operand(node, 1)
    if data is None or places is None:
        return _from_range(integers, node, places) if places is not None else None
    if places.numbers is not None:
        return _moved(integers, node)
    if data.numbers is None or data.const.ndim != 1 or data.const.size < 2:
        return None
    start, step = int(data.const[0]), int(data.const[1] - data.const[0])
    even = (data.const == start + step * np.arange(data.const.size).astype(object)).all()
    room = AffineExpression.of(data.const.size - 1) - places
    if not even or not at_least(places, 0, integers.steps) or not at_least(room, 0, integers.steps):
        return None
    return AffineExpression.of(start) + AffineExpression.of(step) * places


def _from_range(integers: IntegerDomain, node: ir.Node, places: AffineExpression) -> AffineExpression | None:
    source = node.inputs[0]
    maker = source.producer() if source is not None else None
    if maker is None or maker.op_type != "Range" or maker.domain != "" or maker.graph is integers.body:
        return None
    start, limit, step = (integers.scalar(value) for value in maker.inputs)
    if start is None or limit is None or step is None or step.number != 1:
        return None
    if not at_least(places, 0, integers.steps) or not at_least(limit - start - AffineExpression.of(1) - places, 0, integers.steps):
        return None
    return start + places


def _moved(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the elements after a constant movement."""
    data = integers.operand(node, 0)
    if data is None:
        return None
    map_of = movement(node, integers.opset, data.shape, partial(_numbers, integers, node))
    if map_of is None or map_of.make([np.broadcast_to(False, data.shape)])[0].size > LARGEST:
        return None
    return data.moved(lambda array: map_of.make([array])[0])


def _numbers(integers: IntegerDomain, node: ir.Node, index: int) -> np.ndarray | None:
    operand = integers.operand(node, index)
    return None if operand is None else operand.numbers


def _concatenated(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the joined elements."""
    parts = [integers.of(value) for value in node.inputs]
    known = [part for part in parts if part is not None and part.const.ndim]
    return joined(known, axis_of(node, 0)) if len(known) == len(parts) else None


def _tiled(integers: IntegerDomain, node: ir.Node) -> AffineExpression | None:
    """Return the elements, repeated a constant number of times."""
    data, repeats = integers.operand(node, 0), integers.operand(node, 1)
    times = None if repeats is None else repeats.numbers
    if data is None or times is None or len(times) != data.const.ndim or data.const.size * int(np.prod(times)) > LARGEST:
        return None
    return data.moved(partial(np.tile, reps=tuple(int(number) for number in times)))


_TRANSFER: Mapping[str, Callable[[IntegerDomain, ir.Node], AffineExpression | None]] = {
    **dict.fromkeys(("Add", "Mul", "Sub"), _arithmetic),
    **dict.fromkeys(("Expand", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"), _moved),
    "Cast": _cast,
    "Clip": _clipped,
    "Concat": _concatenated,
    "Gather": _gather,
    "Max": _min_or_max,
    "Min": _min_or_max,
    "Neg": _negated,
    "Range": _range,
    "Shape": _shape,
    "Size": _element_count,
    "Tile": _tiled,
    "Where": _chosen,
}


class Integers(IntegerDomain):
    """The affine expressions of the integers of a body, or outside loops."""

    transfer = _TRANSFER
