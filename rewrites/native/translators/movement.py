"""Translates operators that only move elements, and operators on shapes.

A move becomes a view if strides can express it. Otherwise it becomes as few copies as possible. Concat copies its operands into the
parts of one buffer. ``memory`` omits these copies if the operands can be computed in place.

A Concat of constants becomes a constant during compilation, because it may be a shape that another operator needs. Such a shape
contains a sample number in place of each free size. If this number becomes part of a constant of the plan, the plans for the two
samples differ in more than sizes, and the loop gets no plan.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.graph.type_names import type_name
from rewrites.native.body import Body
from rewrites.native.operations import NUMPY, Op
from rewrites.native.operator_views import Translator, TranslatorCall
from rewrites.native.views import (
    GrowingState,
    View,
    broadcast,
    constant_elements,
    dense_strides,
    move_elements,
    view_of_addresses,
    view_of_rows,
)
from rewrites.ops.element_moves import movement
from rewrites.ops.versions import axis_of, dropout_is_identity

__all__ = ["MOVEMENT", "SHAPES"]

_CUTTING = frozenset({"Gather", "Slice", "Split", "Squeeze"})
"""Operators that cut an axis. The size of this axis must be known."""
_PIECES = 64
"""The maximum number of copies for a move that strides cannot express."""


def _dropout(call: TranslatorCall) -> Sequence[View]:
    call.only_first_output()
    if not dropout_is_identity(call.node, call.opset):
        raise call.refuse("NATIVE-FORM", "it may be in training")
    return [call.view(0)]


def _move(call: TranslatorCall) -> Sequence[View]:
    x = call.view(0)
    cuts = call.node.op_type in _CUTTING
    known = call.known if cuts else call.sizes
    move = movement(call.node, call.opset, [_hide_free_size(call.body, size) if cuts else size for size in x.shape], known)
    if move is None:
        raise call.refuse("NATIVE-FORM", "its sizes or positions are known only at run time")
    views = _moved_views(call, x, move.apply)
    if call.node.op_type in ("Reshape", "Expand") and not all(isinstance(view, View) for view in views):
        views = _moved_views(call, call.body.copied(x), move.apply)
    return [view if isinstance(view, View) else _copy_elements(call, x, view) for view in views]


def _hide_free_size(body: Body, size: int) -> int | str:
    return "free" if body.free.is_free(size) else size


def _moved_views(
    call: TranslatorCall, x: View, make: Callable[[Sequence[np.ndarray]], list[np.ndarray]]
) -> list[View | np.ndarray]:
    try:
        views = move_elements(x, lambda addresses: make([addresses]))
    except ValueError:
        raise call.refuse("NATIVE-SHAPE", f"it does not fit the shape {list(x.shape)}") from None
    if views is None:
        raise call.refuse("NATIVE-LIMIT", f"it moves {x.count} elements")
    return views


def _copy_elements(call: TranslatorCall, x: View, addresses: np.ndarray) -> View:
    """Return a copy of the elements of ``x``'s buffer at ``addresses``.

    Each step copies a part that strides can express.
    """
    if x.buffer.array is not None:
        return call.body.constant(x.buffer.array[addresses], truth=x.truth)
    result = call.body.new_buffer(addresses.shape, x)
    if _copy_pieces(call.body, x, addresses, result, _PIECES) > _PIECES:
        raise call.refuse("NATIVE-LIMIT", f"it needs more than {_PIECES} copies")
    return result


def _copy_pieces(body: Body, x: View, addresses: np.ndarray, target: View, most_copies: int) -> int:
    """Copy the elements at ``addresses`` to ``target``, row by row if strides cannot express all of them.

    Return the number of copies. If it exceeds ``most_copies``, stop before all elements are copied.
    """
    piece = view_of_addresses(x, addresses)
    if isinstance(piece, View):
        body.emit(Op.COPY, target, piece)
        return 1
    copies = 0
    for row in range(addresses.shape[0]):
        if copies > most_copies:
            break
        part = View(target.buffer, target.shape[1:], target.strides[1:], target.offset + row * target.strides[0])
        copies += _copy_pieces(body, x, addresses[row], part, most_copies - copies)
    return copies


def _flatten(call: TranslatorCall) -> Sequence[View]:
    x = call.view(0)
    axis = axis_of(call.node, 1, len(x.shape))
    shape = (math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
    (made,) = move_elements(x, lambda addresses: [addresses.reshape(shape)]) or [np.empty(0)]
    return [made if isinstance(made, View) else call.body.reshaped(x, shape)]


def _identity(call: TranslatorCall) -> Sequence[View]:
    return [call.view(0)]


def _tile(call: TranslatorCall) -> Sequence[View]:
    """Translate Tile. A stride of 0 repeats an axis of size 1. Other axes need a copy."""
    x, repeats = call.view(0), call.sizes(1)
    if repeats is None or repeats.shape != (len(x.shape),) or (repeats < 1).any():
        raise call.refuse("NATIVE-FORM", "its repeats are not constant")
    times = [int(each) for each in repeats]
    shape = tuple(size * each for size, each in zip(x.shape, times, strict=True))
    spread = tuple(0 if size == 1 else stride for size, stride in zip(x.shape, x.strides, strict=True))
    if all(size == 1 or each == 1 for size, each in zip(x.shape, times, strict=True)):
        return [View(x.buffer, shape, spread, x.offset, x.truth)]
    pairs = [part for size, each in zip(x.shape, times, strict=True) for part in (each, size)]
    steps = [part for stride in x.strides for part in (0, stride)]
    both = View(x.buffer, tuple(pairs), tuple(steps), x.offset, x.truth)
    copied = call.body.copied(both)
    return [View(copied.buffer, shape, dense_strides(shape), copied.offset, x.truth)]


def _concat(call: TranslatorCall) -> Sequence[View]:
    parts = call.views
    parts = [call.body.as_type(part, parts[0].buffer.dtype) if part.truth else part for part in parts]
    if len(parts) == 1:
        return parts
    if call.node in call.body.growing:
        return [_extended(call, call.body.growing[call.node], parts)]
    rank = len(parts[0].shape)
    axis = axis_of(call.node, 0, rank)
    others = [(*part.shape[:axis], *part.shape[axis + 1 :]) for part in parts]
    for other in others:
        call.body.free.check_same(others[0], other)
    if len(set(others)) > 1 or not 0 <= axis < rank:
        raise call.refuse("NATIVE-SHAPE", f"the shapes {[part.shape for part in parts]} cannot be joined")
    if any(call.body.free.is_free(part.shape[axis]) for part in parts):
        raise call.refuse("NATIVE-SHAPE", "it joins along an axis whose size is known only at run time")
    if all(part.buffer.array is not None for part in parts):
        return [call.body.constant(np.concatenate([constant_elements(part) for part in parts], axis), truth=parts[0].truth)]
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    result = call.body.new_buffer(shape, parts[0])
    offset = 0
    for part in parts:
        place = View(result.buffer, part.shape, result.strides, offset * result.strides[axis], part.truth)
        call.body.emit(Op.COPY, place, part)
        offset += part.shape[axis]
    return [result]


def _extended(call: TranslatorCall, state: GrowingState, parts: Sequence[View]) -> View:
    """Join a view of the length of a growing state before the step and the rows that the step adds.

    If the first part is the state, write only the added rows. In the result, the growing axis is the outermost axis.
    """
    joined = state.new if state.in_place else view_of_rows(call.body.new_buffer(state.new.shape, parts[0]), state.axis)
    places = state.split(joined)
    for part, place in zip(parts, places, strict=True):
        call.body.free.check_same(place.shape, part.shape)
        if part.shape != place.shape:
            raise call.refuse("NATIVE-SHAPE", f"the shapes {[part.shape for part in parts]} cannot be joined")
    if not state.in_place:
        call.body.emit(Op.COPY, places[0], parts[0])
    call.body.emit(Op.COPY, places[1], parts[1])
    return joined


def _constant_of_shape(call: TranslatorCall) -> Sequence[View]:
    shape = call.sizes(0)
    given = call.node.attributes.get("value")
    if shape is None or shape.ndim != 1:
        raise call.refuse("NATIVE-FORM", "its shape is not constant")
    number = np.zeros(1, np.float32) if given is None else given.as_tensor().numpy()
    dims = tuple(int(size) for size in shape)
    if number.dtype not in NUMPY.values() or 0 in dims:
        raise call.refuse("NATIVE-TYPE", f"it returns {list(dims)} elements of {number.dtype}")
    return [broadcast(call.body.constant(number.reshape(())), dims)]


def _one_hot(call: TranslatorCall) -> Sequence[View]:
    """Translate OneHot. A negative index counts from the end. An index out of range selects nothing."""
    body, indices, depth, values = call.body, call.view(0), call.known(1), call.view(2)
    if depth is None or depth.size != 1 or int(depth.item()) < 1 or values.shape != (2,):
        raise call.refuse("NATIVE-FORM", "its depth is not constant")
    if indices.dtype not in (ir.DataType.INT64, ir.DataType.INT32):
        raise call.refuse("NATIVE-TYPE", f"its indices are {type_name(indices.dtype)}")
    count, axis = int(depth.item()), axis_of(call.node, -1, len(indices.shape) + 1)
    shape, strides = list(indices.shape), list(indices.strides)
    shape.insert(axis, 1)
    strides.insert(axis, 0)
    spread = View(indices.buffer, tuple(shape), tuple(strides), indices.offset)
    numbers = np.arange(count).reshape(count, *[1] * (len(indices.shape) - axis))
    kind = np.int64 if indices.dtype == ir.DataType.INT64 else np.int32
    ways = [body.elementwise(Op.EQUAL, spread, body.constant(each.astype(kind)), truth=True) for each in (numbers, numbers - count)]
    here = body.elementwise(Op.MAX, *ways, truth=True)
    off, on = (View(values.buffer, (), (), values.offset + at * values.strides[0], values.truth) for at in (0, 1))
    return [body.elementwise(Op.SELECT, here, on, off, truth=values.truth)]


def _shape(call: TranslatorCall) -> Sequence[View]:
    sizes = call.view(0).shape
    start = call.node.attributes.get_int("start", 0)
    end = call.node.attributes.get_int("end", len(sizes))
    return [call.body.constant(np.array(sizes[start:end], np.int64))]


def _size(call: TranslatorCall) -> Sequence[View]:
    return [call.body.constant(np.array(call.view(0).count, np.int64))]


MOVEMENT: dict[str, Translator] = {
    "Dropout": _dropout,
    "Expand": _move,
    "Flatten": _flatten,
    "Gather": _move,
    "Identity": _identity,
    "Reshape": _move,
    "Slice": _move,
    "Split": _move,
    "Squeeze": _move,
    "Tile": _tile,
    "Transpose": _move,
    "Unsqueeze": _move,
    "Concat": _concat,
}


SHAPES: dict[str, Translator] = {"ConstantOfShape": _constant_of_shape, "OneHot": _one_hot, "Shape": _shape, "Size": _size}
