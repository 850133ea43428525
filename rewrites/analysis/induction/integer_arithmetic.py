"""Reads the operators that calculate with integers, or choose between them: what Integers follows them by."""

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import EXACT, INTEGERS, LARGEST, Affine, at_least
from rewrites.analysis.induction.followed import Followed
from rewrites.graph.values import static_dims
from rewrites.ops.versions import clip_bounds

__all__ = ["READERS"]


def cast(integers: Followed, node: ir.Node) -> Affine | None:
    """Return the elements as another type of number."""
    data, to = integers.operand(node, 0), ir.DataType(node.attributes["to"].as_int())
    if data is None or (to not in EXACT and to not in INTEGERS):
        return None
    return data.limited(EXACT.get(to))


def arithmetic(integers: Followed, node: ir.Node) -> Affine | None:
    """Return a sum, difference or product."""
    one, other = integers.operand(node, 0), integers.operand(node, 1)
    if one is None or other is None or (node.op_type == "Mul" and one.terms and other.terms):
        return None
    try:
        return one + other if node.op_type == "Add" else one - other if node.op_type == "Sub" else one * other
    except ValueError:
        return None


def negated(integers: Followed, node: ir.Node) -> Affine | None:
    """Return the negative elements."""
    data = integers.operand(node, 0)
    return None if data is None else -data


def extreme(integers: Followed, node: ir.Node) -> Affine | None:
    """Return the input of a Min or Max that surely is the least, or the greatest."""
    parts = [integers.of(value) for value in node.inputs]
    return _extreme(integers, [part for part in parts if part is not None], node.op_type == "Max") if None not in parts else None


def clipped(integers: Followed, node: ir.Node) -> Affine | None:
    """Return the input of a Clip between bounds that it surely keeps."""
    data = integers.operand(node, 0)
    low, high = clip_bounds(node, integers.opset)
    for bound, greatest in ((low, True), (high, False)):
        if bound is not None and data is not None:
            limit = integers.of(bound) if isinstance(bound, ir.Value) else _whole(bound)
            data = None if limit is None else _extreme(integers, [data, limit], greatest)
    return data


def _whole(bound: float) -> Affine | None:
    return Affine.of(int(bound)) if float(bound).is_integer() else None


def _extreme(integers: Followed, parts: list[Affine], greatest: bool) -> Affine | None:
    for part in parts:
        others = [part - other if greatest else other - part for other in parts if other is not part]
        if all(at_least(other, 0, integers.steps) for other in others):
            shape = np.broadcast_shapes(*(one.shape for one in parts))
            return part.moved(partial(np.broadcast_to, shape=shape))
    return None


def chosen(integers: Followed, node: ir.Node) -> Affine | None:
    """Return the side of a Where whose condition surely holds, or surely does not."""
    holds = integers.truth(node.inputs[0])
    if holds is None:
        return None
    side, other = (
        (integers.operand(node, 1), integers.operand(node, 2)) if holds else (integers.operand(node, 2), integers.operand(node, 1))
    )
    condition, value = node.inputs[0], node.inputs[1 if holds else 2]
    shapes = [None if one is None else static_dims(one) for one in (condition, value)]
    if side is None or other is None or shapes[0] is None:
        return None
    shape = np.broadcast_shapes(side.shape, other.shape, shapes[0])
    return side.moved(lambda array: np.broadcast_to(array, shape))


def counted(integers: Followed, node: ir.Node) -> Affine | None:
    """Return the numbers of a Range of which it is known how many there are."""
    start, limit, by = (integers.scalar(value) for value in node.inputs)
    wide = None if start is None or limit is None else (limit - start).number
    step = None if by is None else by.number
    if start is None or wide is None or not step or abs(wide) > LARGEST or (start.terms and start.exact_to is not None):
        return None
    numbers = np.arange(0, wide, step, dtype=np.int64)
    return Affine.of(numbers) + start.moved(partial(np.broadcast_to, shape=numbers.shape))


READERS: dict[str, Callable[[Followed, ir.Node], Affine | None]] = {
    "Add": arithmetic,
    "Cast": cast,
    "Clip": clipped,
    "Max": extreme,
    "Min": extreme,
    "Mul": arithmetic,
    "Neg": negated,
    "Range": counted,
    "Sub": arithmetic,
    "Where": chosen,
}
