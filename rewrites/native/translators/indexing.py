"""Translates operators whose indices are computed in a step: Gather, Scatter, ArgMax, ArgMin and TopK.

    y = Gather(x [S, D], i)            y[:] = x[i[...], :]
    s1 = ScatterND(s [S, D], i, row)   s1 = s; s1[i[...], :] = row (or += row, ...), in place if the state has no other users

A negative index counts from the end. If an index is out of range, the run fails, as in onnxruntime. The plan always computes both
branches of an If. So inside a branch, operators that could fail in this way are refused.
"""

import math
from collections.abc import Sequence

from rewrites.graph.type_names import type_name
from rewrites.native.operations import INT32, INT64, Op
from rewrites.native.operator_views import Translator, TranslatorCall, merge_axes_last, restore_axes
from rewrites.native.translators.movement import MOVEMENT
from rewrites.native.views import View, dense_strides
from rewrites.ops.versions import axis_of, keepdims

__all__ = ["INDEXING"]

_REDUCTIONS = {"none": 0.0, "add": 1.0, "mul": 2.0, "max": 3.0, "min": 4.0}
_MOST_FOUND = 256
"""The maximum k of a TopK. The kernel keeps the k best elements in order, and compares each element with the last of them."""


def _checked_indices(call: TranslatorCall, number: int) -> View:
    """Return input ``number`` as INT64 indices.

    Raise PlanRefused in a branch of an If: the plan computes the branch even if it is not selected, and the indices may then be out
    of range.
    """
    view = call.view(number)
    if view.dtype not in (INT32, INT64):
        raise call.refuse("NATIVE-TYPE", f"its indices are {type_name(view.dtype)}")
    if call.body.enclosing_ifs:
        raise call.refuse("NATIVE-FORM", "its indices may be out of range in a branch that does not run")
    return call.body.as_type(view, INT64)


def _gather(call: TranslatorCall) -> Sequence[View]:
    if call.known(1) is not None:
        return MOVEMENT["Gather"](call)
    x, indices = call.view(0), _checked_indices(call, 1)
    axis, rank = axis_of(call.node, 0, len(x.shape)), len(indices.shape)
    _check_axis(call, x, axis)
    before, after = x.strides[:axis], x.strides[axis + 1 :]
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    source = View(x.buffer, shape, (*before, *[0] * rank, *after), x.offset, x.truth)
    spread = (*[0] * len(before), *indices.strides, *[0] * len(after))
    index_view = View(indices.buffer, shape, spread, indices.offset)
    return [call.body.emit(Op.GATHER, call.body.new_buffer(shape, x), source, index_view, indexed=(x.shape[axis], x.strides[axis]))]


def _gather_elements(call: TranslatorCall) -> Sequence[View]:
    x, indices = call.view(0), _checked_indices(call, 1)
    axis = axis_of(call.node, 0, len(x.shape))
    _check_axis(call, x, axis)
    _check_within(call, indices, x, axis)
    strides = tuple(0 if each == axis else stride for each, stride in enumerate(x.strides))
    source = View(x.buffer, indices.shape, strides, x.offset, x.truth)
    indexed = (x.shape[axis], x.strides[axis])
    return [call.body.emit(Op.GATHER, call.body.new_buffer(indices.shape, x), source, indices, indexed=indexed)]


def _gather_nd(call: TranslatorCall) -> Sequence[View]:
    x, indices = call.body.packed(call.view(0)), _checked_indices(call, 1)
    batch = call.node.attributes.get_int("batch_dims", 0)
    depth = indices.shape[-1] if indices.shape else 0
    if not 1 <= depth <= len(x.shape) - batch or indices.shape[:batch] != x.shape[:batch] or len(indices.shape) <= batch:
        raise call.refuse("NATIVE-SHAPE", f"indices of the shape {list(indices.shape)} do not fit {list(x.shape)}")
    rest, own = x.shape[batch + depth :], dense_strides(x.shape)
    if depth > 1 and any(map(call.body.free.is_free, rest)):
        raise call.refuse("NATIVE-SHAPE", "its rows may be empty, and then onnxruntime does not check its indices")
    positions, indexed = _flat_indices(call, indices, x.shape[batch : batch + depth], math.prod(rest))
    shape = (*positions.shape, *rest)
    strides = (*own[:batch], *[0] * (len(positions.shape) - batch), *own[batch + depth :])
    source = View(x.buffer, shape, strides, x.offset, x.truth)
    index_view = View(positions.buffer, shape, (*positions.strides, *[0] * len(rest)), positions.offset)
    return [call.body.emit(Op.GATHER, call.body.new_buffer(shape, x), source, index_view, immediates=(1.0, 0.0), indexed=indexed)]


def _flat_indices(call: TranslatorCall, indices: View, shape: Sequence[int], slice_stride: int) -> tuple[View, tuple[int, int]]:
    """Combine each row of ``indices`` into a single index.

    For ``shape`` = [3, 4], the row [2, 1] becomes 2 * 4 + 1 = 9.

    Args:
        indices: For each slice to read or write, a row with one index for each size in ``shape``.
        shape: The sizes of the indexed axes.
        slice_stride: The distance between two neighbouring slices, in elements.

    Returns:
        A pair: the combined indices, and the value for ``BodyStep.indexed``, which is (number of slices, ``slice_stride``).
    """
    parts = [
        View(indices.buffer, indices.shape[:-1], indices.strides[:-1], indices.offset + at * indices.strides[-1])
        for at in range(len(shape))
    ]
    if len(parts) == 1:
        return parts[0], (shape[0], slice_stride)
    located: list[View] = []
    for part, size, stride in zip(parts, shape, dense_strides(shape), strict=True):
        located = [call.body.emit(Op.LOCATE, call.body.new_indices(part.shape), part, *located, indexed=(size, stride))]
    return located[0], (math.prod(shape), slice_stride)


def _scatter_nd(call: TranslatorCall) -> Sequence[View]:
    x, indices, updates = call.view(0), _checked_indices(call, 1), call.view(2)
    depth = indices.shape[-1] if indices.shape else 0
    if not 1 <= depth <= len(x.shape) or updates.shape != (*indices.shape[:-1], *x.shape[depth:]):
        raise call.refuse("NATIVE-SHAPE", f"{list(indices.shape)} indices and {list(updates.shape)} do not fit {list(x.shape)}")
    reduction, copy = _copy_to_update(call, x)
    positions, indexed = _flat_indices(call, indices, x.shape[:depth], math.prod(x.shape[depth:]))
    strides = (*[0] * len(positions.shape), *copy.strides[depth:])
    target = View(copy.buffer, updates.shape, strides)
    index_view = View(positions.buffer, updates.shape, (*positions.strides, *[0] * (len(x.shape) - depth)), positions.offset)
    call.body.emit(
        Op.SCATTER,
        target,
        call.body.as_type(updates, x.buffer.dtype),
        index_view,
        immediates=(reduction, 0.0),
        indexed=indexed,
    )
    return [copy]


def _scatter_elements(call: TranslatorCall) -> Sequence[View]:
    x, indices, updates = call.view(0), _checked_indices(call, 1), call.view(2)
    axis = axis_of(call.node, 0, len(x.shape))
    _check_axis(call, x, axis)
    _check_within(call, indices, x, axis)
    if updates.shape != indices.shape:
        raise call.refuse("NATIVE-SHAPE", f"{list(indices.shape)} indices are for {list(updates.shape)} elements")
    reduction, copy = _copy_to_update(call, x)
    strides = tuple(0 if each == axis else stride for each, stride in enumerate(copy.strides))
    target = View(copy.buffer, indices.shape, strides)
    source = call.body.as_type(updates, x.buffer.dtype)
    call.body.emit(Op.SCATTER, target, source, indices, immediates=(reduction, 0.0), indexed=(x.shape[axis], copy.strides[axis]))
    return [copy]


def _copy_to_update(call: TranslatorCall, x: View) -> tuple[float, View]:
    """Return a pair for a Scatter: the number of its reduction in loop plans, and a copy of ``x``.

    The Scatter writes to this copy.
    """
    reduction = call.node.attributes.get_string("reduction", "none")
    if reduction not in _REDUCTIONS or (reduction != "none" and x.truth):
        raise call.refuse("NATIVE-TYPE", f"its reduction of {type_name(x.dtype)} is '{reduction}'")
    return _REDUCTIONS[reduction], call.body.emit(Op.COPY, call.body.new_buffer(x.shape, x), x)


def _check_axis(call: TranslatorCall, x: View, axis: int) -> None:
    if not 0 <= axis < len(x.shape):
        raise call.refuse("NATIVE-FORM", "it has no such axis")


def _check_within(call: TranslatorCall, indices: View, x: View, axis: int) -> None:
    """Raise PlanRefused if ``indices`` has more elements than ``x`` along an axis other than ``axis``."""
    own, others = ([*view.shape[:axis], *view.shape[axis + 1 :]] for view in (indices, x))
    call.body.free.check_same(own, others)
    if len(own) != len(others) or any(one > other for one, other in zip(own, others, strict=True)):
        raise call.refuse("NATIVE-SHAPE", f"indices of the shape {list(indices.shape)} do not fit {list(x.shape)}")


def _arg_extreme(op: Op) -> Translator:
    def translate(call: TranslatorCall) -> Sequence[View]:
        x, body = call.view(0), call.body
        axis = axis_of(call.node, 0, len(x.shape))
        _check_axis(call, x, axis)
        if x.truth:
            raise call.refuse("NATIVE-TYPE", "it compares bools")
        rows = merge_axes_last(body, x, [axis])
        buffer = body.new_indices(rows.shape[:-1])
        target = View(buffer.buffer, rows.shape, (*dense_strides(rows.shape[:-1]), 0))
        last = float(call.node.attributes.get_int("select_last_index", 0))
        body.emit(op, target, rows, immediates=(last, 0.0))
        kept = [1 if each == axis else size for each, size in enumerate(x.shape)]
        shape = kept if keepdims(call.node) else [size for each, size in enumerate(x.shape) if each != axis]
        return [View(buffer.buffer, tuple(shape), dense_strides(shape))]

    return translate


def _top_k(call: TranslatorCall) -> Sequence[View]:
    """Translate TopK: find the positions of the largest or smallest elements, and gather these elements."""
    x, body, given, attributes = call.view(0), call.body, call.known(1), call.node.attributes
    axis = axis_of(call.node, -1, len(x.shape))
    _check_axis(call, x, axis)
    count = attributes.get_int("k", 0) if not call.has(1) else int(given.item()) if given is not None and given.size == 1 else 0
    if count < 1 or (count > 1 and not attributes.get_int("sorted", 1)) or x.truth:
        raise call.refuse("NATIVE-FORM", "the number of elements to find is unknown, or their order is arbitrary")
    if body.free.is_free(x.shape[axis]) or not count <= min(x.shape[axis], _MOST_FOUND):
        raise call.refuse("NATIVE-LIMIT", f"it finds {count} elements, too many, or along an axis of a size known only at run time")
    rows = merge_axes_last(body, x, [axis])
    places = body.new_indices((*rows.shape[:-1], count))
    body.emit(Op.TOP_K, places, rows, immediates=(float(attributes.get_int("largest", 1)), 0.0), indexed=(count, 1))
    each = View(rows.buffer, places.shape, (*rows.strides[:-1], 0), rows.offset)
    index_view = body.emit(Op.GATHER, body.new_buffer(places.shape, x), each, places, indexed=(rows.shape[-1], rows.strides[-1]))
    shape = [count if at == axis else size for at, size in enumerate(x.shape)]
    return [restore_axes(index_view, shape, [axis]), restore_axes(places, shape, [axis])]


INDEXING: dict[str, Translator] = {
    "ArgMax": _arg_extreme(Op.ARG_MAX),
    "ArgMin": _arg_extreme(Op.ARG_MIN),
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TopK": _top_k,
}
