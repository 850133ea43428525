"""Softmax and the normalisations over trailing axes."""

from collections.abc import Callable, Sequence

from rewrites.native.call import Call
from rewrites.native.operations import Op
from rewrites.native.translators.rows import rows_along, turned_back
from rewrites.native.views import View, broadcast
from rewrites.ops.versions import axis_of, softmax_spec

__all__ = ["NORMALIZATION"]


def _softmax(op: Op) -> Callable[[Call], Sequence[View]]:
    def translate(call: Call) -> Sequence[View]:
        x = call.view(0)
        rank = len(x.shape)
        spec = softmax_spec(call.node, call.opset, rank)
        if not 0 <= spec.axis < rank:
            raise call.refuse("NATIVE-FORM", "it has no such axis")
        axes = range(spec.axis, rank) if spec.flattens else [spec.axis]
        rows = rows_along(call.body, x, axes)
        return [turned_back(call.body.emit(op, call.body.fresh(rows.shape, rows), rows), x.shape, axes)]

    return translate


def _normalized(op: Op) -> Callable[[Call], Sequence[View]]:
    def translate(call: Call) -> Sequence[View]:
        call.only_first_output()
        x = call.view(0)
        axis = axis_of(call.node, -1, len(x.shape))
        if not 0 <= axis < len(x.shape) or call.node.attributes.get_int("stash_type", 1) != 1:
            raise call.refuse("NATIVE-FORM", "it has no such axis, or calculates in another type")
        axes = range(axis, len(x.shape))
        rows = rows_along(call.body, x, axes)
        given = [call.view(index) for index in (1, 2) if call.has(index)]
        if any(len(view.shape) > len(axes) for view in given):
            raise call.refuse("NATIVE-FORM", "its scale has more axes than it normalises")
        parts = [rows_along(call.body, broadcast(view, x.shape), axes) for view in given]
        epsilon = call.node.attributes.get_float("epsilon", 1e-5)
        target = call.body.fresh(rows.shape, rows)
        return [turned_back(call.body.emit(op, target, rows, *parts, immediates=(epsilon, 0.0)), x.shape, axes)]

    return translate


NORMALIZATION: dict[str, Callable[[Call], Sequence[View]]] = {
    "LayerNormalization": _normalized(Op.LAYER_NORMALIZATION),
    "LogSoftmax": _softmax(Op.LOG_SOFTMAX),
    "RMSNormalization": _normalized(Op.RMS_NORMALIZATION),
    "Softmax": _softmax(Op.SOFTMAX),
}
