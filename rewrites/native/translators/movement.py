"""Translate operators that only move elements into views where strides lead to the elements, else into as few copies as possible.

Concat copies into the parts of one buffer; ``places`` leaves those copies out where the parts can be computed in place. Constants
are joined when the plan is compiled, because they may be the sizes of a shape.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from rewrites.native.body import Body, elements
from rewrites.native.call import Call, Translator
from rewrites.native.operations import Op
from rewrites.native.views import View, dense, fitted, moved
from rewrites.ops.movement import movement
from rewrites.ops.versions import axis_of, dropout_is_identity

__all__ = ["MOVEMENT"]


def _concat(call: Call) -> Sequence[View]:
    parts = call.views
    parts = [call.body.as_type(part, parts[0].buffer.dtype) if part.truth else part for part in parts]
    if len(parts) == 1:
        return parts
    rank = len(parts[0].shape)
    axis = axis_of(call.node, 0, rank)
    others = [(*part.shape[:axis], *part.shape[axis + 1 :]) for part in parts]
    for other in others:
        call.body.free.check_same(others[0], other)
    if len(set(others)) > 1 or not 0 <= axis < rank:
        raise call.refuse("NATIVE-SHAPE", f"the shapes {[part.shape for part in parts]} cannot be joined")
    if any(call.body.free.has(part.shape[axis]) for part in parts):
        raise call.refuse("NATIVE-SHAPE", "it joins along an axis whose size is known only when the model runs")
    if all(part.buffer.array is not None for part in parts):
        return [call.body.constant(np.concatenate([elements(part) for part in parts], axis), truth=parts[0].truth)]
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    result = call.body.fresh(shape, parts[0])
    offset = 0
    for part in parts:
        place = View(result.buffer, part.shape, result.strides, offset * result.strides[axis], part.truth)
        call.body.emit(Op.COPY, place, part)
        offset += part.shape[axis]
    return [result]


_CUTTING = frozenset({"Gather", "Slice", "Split", "Squeeze"})
"""What takes parts of an axis, which must be known."""
_PIECES = 64
"""Into how many copies a movement along no strides may be cut."""


def _moving(call: Call) -> Sequence[View]:
    x = call.view(0)
    cuts = call.node.op_type in _CUTTING
    known = call.known if cuts else call.sizes
    found = movement(call.node, call.opset, [_free(call.body, size) if cuts else size for size in x.shape], known)
    if found is None:
        raise call.refuse("NATIVE-FORM", "what it moves is known only when the model runs")
    made = _made(call, x, found.make)
    if call.node.op_type in ("Reshape", "Expand") and not all(isinstance(view, View) for view in made):
        made = _made(call, call.body.copied(x), found.make)
    return [view if isinstance(view, View) else _collected(call, x, view) for view in made]


def _free(body: Body, size: int) -> int | str:
    return "free" if body.free.has(size) else size


def _made(call: Call, x: View, make: Callable[[Sequence[np.ndarray]], list[np.ndarray]]) -> list[View | np.ndarray]:
    try:
        made = moved(x, lambda addresses: make([addresses]))
    except ValueError:
        raise call.refuse("NATIVE-SHAPE", f"it does not fit the shape {list(x.shape)}") from None
    if made is None:
        raise call.refuse("NATIVE-LIMIT", f"it moves {x.count} elements")
    return made


def _collected(call: Call, x: View, addresses: np.ndarray) -> View:
    """Copy the elements at ``addresses``, in no regular order, one piece after the other."""
    if x.buffer.array is not None:
        return call.body.constant(x.buffer.array[addresses], truth=x.truth)
    result = call.body.fresh(addresses.shape, x)
    if _copy_pieces(call.body, x, addresses, result, _PIECES) > _PIECES:
        raise call.refuse("NATIVE-LIMIT", f"it takes more than {_PIECES} copies")
    return result


def _copy_pieces(body: Body, x: View, addresses: np.ndarray, target: View, left: int) -> int:
    """Copy row by row where the elements are in no regular order; return how many copies it took, or more than ``left``."""
    piece = fitted(x, addresses)
    if isinstance(piece, View):
        body.emit(Op.COPY, target, piece)
        return 1
    taken = 0
    for row in range(addresses.shape[0]):
        if taken > left:
            break
        part = View(target.buffer, target.shape[1:], target.strides[1:], target.offset + row * target.strides[0])
        taken += _copy_pieces(body, x, addresses[row], part, left - taken)
    return taken


def _flatten(call: Call) -> Sequence[View]:
    x = call.view(0)
    axis = axis_of(call.node, 1, len(x.shape))
    shape = (math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
    (made,) = moved(x, lambda addresses: [addresses.reshape(shape)]) or [np.empty(0)]
    return [made if isinstance(made, View) else call.body.reshaped(x, shape)]


def _dropout(call: Call) -> Sequence[View]:
    call.only_first_output()
    if not dropout_is_identity(call.node, call.opset):
        raise call.refuse("NATIVE-FORM", "it may be in training")
    return [call.view(0)]


def _identity(call: Call) -> Sequence[View]:
    return [call.view(0)]


def _tile(call: Call) -> Sequence[View]:
    """An axis of size 1 is repeated by a stride of 0, another by copies."""
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
    return [View(copied.buffer, shape, dense(shape), copied.offset, x.truth)]


MOVEMENT: dict[str, Translator] = {
    "Dropout": _dropout,
    "Expand": _moving,
    "Flatten": _flatten,
    "Gather": _moving,
    "Identity": _identity,
    "Reshape": _moving,
    "Slice": _moving,
    "Split": _moving,
    "Squeeze": _moving,
    "Tile": _tile,
    "Transpose": _moving,
    "Unsqueeze": _moving,
    "Concat": _concat,
}
