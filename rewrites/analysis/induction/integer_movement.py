"""Reads the operators that make integers of shapes, and move them: what Integers follows them by."""

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import LARGEST, Affine, at_least, joined
from rewrites.analysis.induction.followed import Followed
from rewrites.ops.movement import movement
from rewrites.ops.versions import axis_of

__all__ = ["READERS"]


def shape(integers: Followed, node: ir.Node) -> Affine | None:
    """Return the dimensions of the input of a Shape; dimensions inside the body may change from step to step."""
    source = node.inputs[0]
    if source is None or source.shape is None:
        return None
    axes = range(len(source.shape))[node.attributes.get_int("start", 0) : node.attributes.get_int("end")]
    dims = [integers.dim(source, axis) for axis in axes]
    found = [dim for dim in dims if dim is not None]
    if not dims or len(found) < len(dims):
        return None if dims else Affine.of(np.zeros(0, np.int64))
    return joined([dim.reshaped((1,)) for dim in found], 0)


def size(integers: Followed, node: ir.Node) -> Affine | None:
    """Return the size of the input of a Size, where all but one dimension are numbers."""
    dims = shape(integers, node)
    if dims is None:
        return None
    product = Affine.of(1)
    for i in range(dims.const.size):
        part = dims.moved(partial(np.take, indices=i))
        if part.terms and product.terms:
            return None
        product = product * part
    return product


def gather(integers: Followed, node: ir.Node) -> Affine | None:
    """Return chosen elements, or the number that stands at a place of an even row of numbers."""
    data, places = integers.operand(node, 0), integers.operand(node, 1)
    if data is None or places is None:
        return _from_range(integers, node, places) if places is not None else None
    if places.numbers is not None:
        return moved(integers, node)
    if data.numbers is None or data.const.ndim != 1 or data.const.size < 2:
        return None
    start, step = int(data.const[0]), int(data.const[1] - data.const[0])
    even = (data.const == start + step * np.arange(data.const.size).astype(object)).all()
    room = Affine.of(data.const.size - 1) - places
    if not even or not at_least(places, 0, integers.steps) or not at_least(room, 0, integers.steps):
        return None
    return Affine.of(start) + Affine.of(step) * places


def _from_range(integers: Followed, node: ir.Node, places: Affine) -> Affine | None:
    source = node.inputs[0]
    maker = source.producer() if source is not None else None
    if maker is None or maker.op_type != "Range" or maker.domain != "" or maker.graph is integers.body:
        return None
    start, limit, step = (integers.scalar(value) for value in maker.inputs)
    if start is None or limit is None or step is None or step.number != 1:
        return None
    if not at_least(places, 0, integers.steps) or not at_least(limit - start - Affine.of(1) - places, 0, integers.steps):
        return None
    return start + places


def moved(integers: Followed, node: ir.Node) -> Affine | None:
    """Return the elements where a constant movement puts them."""
    data = integers.operand(node, 0)
    if data is None:
        return None
    map_of = movement(node, integers.opset, data.shape, partial(_numbers, integers, node))
    if map_of is None or map_of.make([np.broadcast_to(False, data.shape)])[0].size > LARGEST:
        return None
    return data.moved(lambda array: map_of.make([array])[0])


def _numbers(integers: Followed, node: ir.Node, index: int) -> np.ndarray | None:
    operand = integers.operand(node, index)
    return None if operand is None else operand.numbers


def concatenated(integers: Followed, node: ir.Node) -> Affine | None:
    """Return joined elements."""
    parts = [integers.of(value) for value in node.inputs]
    known = [part for part in parts if part is not None and part.const.ndim]
    return joined(known, axis_of(node, 0)) if len(known) == len(parts) else None


def tiled(integers: Followed, node: ir.Node) -> Affine | None:
    """Return the elements repeated constant numbers of times."""
    data, repeats = integers.operand(node, 0), integers.operand(node, 1)
    times = None if repeats is None else repeats.numbers
    if data is None or times is None or len(times) != data.const.ndim or data.const.size * int(np.prod(times)) > LARGEST:
        return None
    return data.moved(partial(np.tile, reps=tuple(int(number) for number in times)))


READERS: dict[str, Callable[[Followed, ir.Node], Affine | None]] = {
    "Concat": concatenated,
    "Expand": moved,
    "Gather": gather,
    "Identity": moved,
    "Reshape": moved,
    "Shape": shape,
    "Size": size,
    "Slice": moved,
    "Squeeze": moved,
    "Tile": tiled,
    "Transpose": moved,
    "Unsqueeze": moved,
}
