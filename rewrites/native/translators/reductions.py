"""Translates reductions along known axes, Softmax, and the normalisations over trailing axes.

Works around ORT-LOG-SUM-EXP-28.
"""

import math
from collections.abc import Sequence

from rewrites.base import since
from rewrites.graph.type_names import type_name
from rewrites.graph.values import producer_of
from rewrites.native.operations import INT32, INT64, Op
from rewrites.native.operator_views import Translator, TranslatorCall, merge_axes_last, restore_axes
from rewrites.native.views import View, broadcast, dense_strides
from rewrites.ops.versions import DYNAMIC, axes_of, axis_of, keepdims, softmax_spec

__all__ = ["REDUCTIONS"]


def _softmax(op: Op) -> Translator:
    def translate(call: TranslatorCall) -> Sequence[View]:
        x = call.view(0)
        rank = len(x.shape)
        spec = softmax_spec(call.node, call.opset, rank)
        if not 0 <= spec.axis < rank:
            raise call.refuse("NATIVE-FORM", "it has no such axis")
        axes = range(spec.axis, rank) if spec.flattens else [spec.axis]
        rows = merge_axes_last(call.body, x, axes)
        return [restore_axes(call.body.emit(op, call.body.new_buffer(rows.shape, rows), rows), x.shape, axes)]

    return translate


def _normalization(op: Op) -> Translator:
    def translate(call: TranslatorCall) -> Sequence[View]:
        call.only_first_output()
        x = call.view(0)
        axis = axis_of(call.node, -1, len(x.shape))
        if not 0 <= axis < len(x.shape) or call.node.attributes.get_int("stash_type", 1) != 1:
            raise call.refuse("NATIVE-FORM", "it has no such axis, or computes in another type")
        axes = range(axis, len(x.shape))
        rows = merge_axes_last(call.body, x, axes)
        given = [call.view(index) for index in (1, 2) if call.has(index)]
        if any(len(view.shape) > len(axes) for view in given):
            raise call.refuse("NATIVE-FORM", "its scale has more axes than it normalises")
        parts = [merge_axes_last(call.body, broadcast(view, x.shape), axes) for view in given]
        epsilon = call.node.attributes.get_float("epsilon", 1e-5)
        target = call.body.new_buffer(rows.shape, rows)
        return [restore_axes(call.body.emit(op, target, rows, *parts, immediates=(epsilon, 0.0)), x.shape, axes)]

    return translate


def _reduce(call: TranslatorCall, x: View, op: Op) -> View:
    axes = axes_of(call.node, call.opset, len(x.shape))
    if axes is DYNAMIC or axes is None:
        raise call.refuse("NATIVE-FORM", "its axes are not constant")
    if not axes and x.shape:
        raise call.refuse("NATIVE-FORM", "it reduces no axis")
    rows = merge_axes_last(call.body, x, sorted(axes))
    buffer = call.body.new_buffer(rows.shape[:-1], rows).buffer
    target = View(buffer, rows.shape, (*dense_strides(rows.shape[:-1]), 0))
    call.body.emit(op, target, rows)
    kept = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    shape = kept if keepdims(call.node) else [size for axis, size in enumerate(x.shape) if axis not in axes]
    return View(buffer, tuple(shape), dense_strides(shape))


def _plain(op: Op) -> Translator:
    return lambda call: [_reduce(call, call.view(0), op)]


def _sum(call: TranslatorCall) -> Sequence[View]:
    """Translate ReduceSum of floats, or of bools cast to integers. Refuse other integers.

    onnxruntime sums integers as doubles, which rounds large sums.
    """
    x, cast = call.view(0), producer_of(call.value(0), "Cast")
    counts = cast is not None and cast.inputs[0] is not None and call.body.view(cast.inputs[0]).truth
    if x.dtype in (INT32, INT64) and not counts:
        raise call.refuse("NATIVE-TYPE", f"it sums {type_name(x.dtype)}")
    return [_reduce(call, x, Op.SUM)]


def _l1(call: TranslatorCall) -> Sequence[View]:
    return [_reduce(call, call.body.elementwise(Op.ABS, call.view(0)), Op.SUM)]


def _l2(call: TranslatorCall) -> Sequence[View]:
    return [call.body.elementwise(Op.SQRT, _reduce(call, call.view(0), Op.SUM_OF_SQUARES))]


def _log_sum_exp(call: TranslatorCall) -> Sequence[View]:
    """Translate ReduceLogSumExp. Before opset 28, subtract the maximum first unless it is infinite."""
    body, x = call.body, call.view(0)
    if call.opset >= since.PLAIN_LOG_SUM_EXP:
        return [body.elementwise(Op.LOG, _reduce(call, body.elementwise(Op.EXP, x), Op.SUM))]
    largest = _reduce(call, x, Op.REDUCE_MAX)
    endless = body.elementwise(Op.EQUAL, body.elementwise(Op.ABS, largest), body.number(math.inf, x.dtype), truth=True)
    shift = body.elementwise(Op.WHERE, endless, body.number(0.0, x.dtype), largest)
    powers = body.elementwise(Op.EXP, body.elementwise(Op.SUB, x, _with_unit_axes(call, x, shift)))
    return [body.elementwise(Op.ADD, body.elementwise(Op.LOG, _reduce(call, powers, Op.SUM)), shift)]


def _with_unit_axes(call: TranslatorCall, x: View, result: View) -> View:
    """Return ``result``, a dense reduction of ``x``, with reduced axes of size 1 (``keepdims=1``)."""
    axes = axes_of(call.node, call.opset, len(x.shape))
    assert isinstance(axes, tuple)
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    return View(result.buffer, tuple(shape), dense_strides(shape))


REDUCTIONS: dict[str, Translator] = {
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _plain(Op.REDUCE_MAX),
    "ReduceMean": _plain(Op.MEAN),
    "ReduceMin": _plain(Op.REDUCE_MIN),
    "ReduceSum": _sum,
    "ReduceSumSquare": _plain(Op.SUM_OF_SQUARES),
    "LayerNormalization": _normalization(Op.LAYER_NORMALIZATION),
    "LogSoftmax": _softmax(Op.LOG_SOFTMAX),
    "RMSNormalization": _normalization(Op.RMS_NORMALIZATION),
    "Softmax": _softmax(Op.SOFTMAX),
}
