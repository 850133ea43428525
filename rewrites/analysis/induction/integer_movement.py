"""Reads the operators that make integers of shapes, and move them: what Integers follows them by."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import Affine, joined
from rewrites.analysis.induction.followed import Followed
from rewrites.analysis.induction.limits import LARGEST
from rewrites.analysis.induction.ranges import at_least
from rewrites.ops.versions import DYNAMIC, axes_of, axis_of, ints_operand, perm_of, slice_spec

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
    chosen = places.numbers
    if chosen is not None:
        axis = axis_of(node, 0)
        if data.const.ndim == 0 or not ((-data.shape[axis] <= chosen) & (chosen < data.shape[axis])).all():
            return None
        return data.moved(lambda array: np.take(array, chosen, axis))
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


def sliced(integers: Followed, node: ir.Node) -> Affine | None:
    """Return a constant range of elements."""
    data = integers.operand(node, 0)
    spec = None if data is None else slice_spec(node, integers.opset, data.const.ndim)
    if data is None or spec is None or spec is DYNAMIC:
        return None
    cuts = [slice(None)] * data.const.ndim
    for start, end, axis, step in zip(spec.starts, spec.ends, spec.axes, spec.steps, strict=True):
        if step < 1:
            return None
        cuts[axis] = slice(start, end, step)
    return data.moved(lambda array: array[tuple(cuts)])


def concatenated(integers: Followed, node: ir.Node) -> Affine | None:
    """Return joined elements."""
    parts = [integers.of(value) for value in node.inputs]
    known = [part for part in parts if part is not None and part.const.ndim]
    return joined(known, axis_of(node, 0)) if len(known) == len(parts) else None


def squeezed(integers: Followed, node: ir.Node) -> Affine | None:
    """Return the elements without, or with more, axes of size 1."""
    data = integers.operand(node, 0)
    axes = None if data is None else axes_of(node, integers.opset, data.const.ndim)
    if data is None or axes is DYNAMIC or (axes is None and node.op_type == "Unsqueeze"):
        return None
    if node.op_type == "Unsqueeze" and axes is not None:
        return data.moved(lambda array: np.expand_dims(array, axes))
    if axes is not None and any(data.shape[axis] != 1 for axis in axes):
        return None
    return data.moved(lambda array: np.squeeze(array, axes))


def reshaped(integers: Followed, node: ir.Node) -> Affine | None:
    """Return the elements in a constant other shape."""
    data = integers.operand(node, 0)
    dims = ints_operand(node, 1) if len(node.inputs) > 1 else None
    if data is None or dims is None or dims is DYNAMIC or not data.const.size or bool(node.attributes.get_int("allowzero", 0)):
        return None
    if any(dim == 0 and i >= data.const.ndim for i, dim in enumerate(dims)):
        return None
    wanted = tuple(data.shape[i] if dim == 0 else dim for i, dim in enumerate(dims))
    try:
        return data.reshaped(wanted)
    except ValueError:
        return None


def expanded(integers: Followed, node: ir.Node) -> Affine | None:
    """Return the elements broadcast to a constant shape."""
    data, dims = integers.operand(node, 0), integers.operand(node, 1)
    shape = None if dims is None else dims.numbers
    if data is None or shape is None or (shape < 0).any():
        return None
    try:
        full = np.broadcast_shapes(data.shape, tuple(shape.tolist()))
    except ValueError:
        return None
    return data.moved(lambda array: np.broadcast_to(array, full)) if math.prod(full) <= LARGEST else None


def transposed(integers: Followed, node: ir.Node) -> Affine | None:
    """Return the elements with axes exchanged."""
    data = integers.operand(node, 0)
    return None if data is None else data.moved(lambda array: np.transpose(array, perm_of(node, array.ndim)))


def copied(integers: Followed, node: ir.Node) -> Affine | None:
    """Return what an Identity copies."""
    return integers.operand(node, 0)


READERS: dict[str, Callable[[Followed, ir.Node], Affine | None]] = {
    "Concat": concatenated,
    "Expand": expanded,
    "Gather": gather,
    "Identity": copied,
    "Reshape": reshaped,
    "Shape": shape,
    "Size": size,
    "Slice": sliced,
    "Squeeze": squeezed,
    "Transpose": transposed,
    "Unsqueeze": squeezed,
}
