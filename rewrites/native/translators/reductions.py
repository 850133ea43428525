"""Reductions along axes that are known.

Works round ORT-LOG-SUM-EXP-28.
"""

import math
from collections.abc import Callable, Sequence

import onnx_ir as ir

from rewrites.base import since
from rewrites.native.call import Call
from rewrites.native.elements import INT32, INT64
from rewrites.native.operations import Op
from rewrites.native.translators.rows import rows_along
from rewrites.native.views import View, dense
from rewrites.ops.versions import DYNAMIC, axes_of, keepdims

__all__ = ["REDUCTIONS"]


def _reduced(call: Call, x: View, op: Op) -> View:
    axes = axes_of(call.node, call.opset, len(x.shape))
    if axes is DYNAMIC or axes is None:
        raise call.refuse("NATIVE-FORM", "its axes are not constant")
    if not axes and x.shape:
        raise call.refuse("NATIVE-FORM", "it reduces no axis")
    rows = rows_along(call.body, x, sorted(axes))
    buffer = call.body.fresh(rows.shape[:-1], rows).buffer
    target = View(buffer, rows.shape, (*dense(rows.shape[:-1]), 0))
    call.body.emit(op, target, rows)
    kept = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    shape = kept if keepdims(call.node) else [size for axis, size in enumerate(x.shape) if axis not in axes]
    return View(buffer, tuple(shape), dense(shape))


def _plain(op: Op) -> Callable[[Call], Sequence[View]]:
    return lambda call: [_reduced(call, call.view(0), op)]


def _sum(call: Call) -> Sequence[View]:
    """Sums of whole numbers are counts, or onnxruntime adds them up as doubles, which is not exact."""
    x, value = call.view(0), call.value(0)
    maker = None if value is None else value.producer()
    counts = maker is not None and maker.op_type == "Cast" and call.body.view(_given(maker)).truth
    if x.dtype in (INT32, INT64) and not counts:
        raise call.refuse("NATIVE-TYPE", f"it adds up {ir.DataType(x.dtype).name}")
    return [_reduced(call, x, Op.SUM)]


def _given(node: ir.Node) -> ir.Value:
    (value,) = node.inputs
    assert value is not None
    return value


def _l1(call: Call) -> Sequence[View]:
    return [_reduced(call, call.body.elementwise(Op.ABS, call.view(0)), Op.SUM)]


def _l2(call: Call) -> Sequence[View]:
    return [call.body.elementwise(Op.SQRT, _reduced(call, call.view(0), Op.SUM_OF_SQUARES))]


def _log_sum_exp(call: Call) -> Sequence[View]:
    """The largest is taken out of the sum, unless it is infinite; opset 28 sums the powers as they are."""
    body, x = call.body, call.view(0)
    if call.opset >= since.PLAIN_LOG_SUM_EXP:
        return [body.elementwise(Op.LOG, _reduced(call, body.elementwise(Op.EXP, x), Op.SUM))]
    largest = _reduced(call, x, Op.REDUCE_MAX)
    endless = body.elementwise(Op.EQUAL, body.elementwise(Op.ABS, largest), body.number(math.inf, x.dtype), truth=True)
    shift = body.elementwise(Op.WHERE, endless, body.number(0.0, x.dtype), largest)
    powers = body.elementwise(Op.EXP, body.elementwise(Op.SUB, x, _kept(call, x, shift)))
    return [body.elementwise(Op.ADD, body.elementwise(Op.LOG, _reduced(call, powers, Op.SUM)), shift)]


def _kept(call: Call, x: View, result: View) -> View:
    """Return a dense result of a reduction with the reduced axes as axes of size 1."""
    axes = axes_of(call.node, call.opset, len(x.shape))
    assert isinstance(axes, tuple)
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    return View(result.buffer, tuple(shape), dense(shape))


REDUCTIONS: dict[str, Callable[[Call], Sequence[View]]] = {
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _plain(Op.REDUCE_MAX),
    "ReduceMean": _plain(Op.MEAN),
    "ReduceMin": _plain(Op.REDUCE_MIN),
    "ReduceSum": _sum,
    "ReduceSumSquare": _plain(Op.SUM_OF_SQUARES),
}
