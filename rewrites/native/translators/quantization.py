"""Translates quantized operators. Plans compute with floats instead of bytes.

    y = MatMulInteger(a, b, za, zb)    y = (a - za) @ b - sum(a - za) * zb

A float represents the product of two bytes exactly. A matrix product is computed in parts of 256 rows of b, so that the sum of each
part is exact in floats too. Captured weights are stored as bytes, and the kernel packs them as floats. Only products can read
captured bytes.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rewrites.graph.type_names import type_name
from rewrites.native.body import Body
from rewrites.native.operations import FLOAT, INT8, INT32, UINT8, Op
from rewrites.native.operator_views import Translator, TranslatorCall, merge_axes_last
from rewrites.native.views import Origin, View, broadcast, dense_strides
from rewrites.ops.versions import axis_of

__all__ = ["QUANTIZATION"]

_PART = 256
"""A sum of this many products of bytes is below 2 ** 24, up to which float32 represents integers exactly."""
_MOST = 65_536
"""A sum of this many bytes is below 2 ** 24."""
_ENDS = {UINT8: (0.0, 255.0), INT8: (-128.0, 127.0)}


def _bytes_as_floats(call: TranslatorCall, index: int) -> View:
    """Return input ``index``, a tensor of 8-bit integers, as floats with the same values."""
    view = call.view(index)
    if view.narrow is None:
        raise call.refuse("NATIVE-TYPE", f"its input {index} is {type_name(view.dtype)}")
    return replace(view, narrow=None)


def _clamped(body: Body, x: View, low: View, high: View) -> View:
    """Clip x to the bounds. NaN becomes the lower bound, as in onnxruntime."""
    real = body.elementwise(Op.SELECT, body.elementwise(Op.EQUAL, x, x, truth=True), x, low)
    return body.elementwise(Op.MIN, body.elementwise(Op.MAX, real, low), high)


def _quantized(body: Body, x: View, scale: View, zero: View, kind: int) -> View:
    low, high = (body.elementwise(Op.SUB, body.number(end), zero) for end in _ENDS[kind])
    near = _clamped(body, body.elementwise(Op.DIV, x, scale), low, high)
    return replace(body.elementwise(Op.ADD, body.elementwise(Op.ROUND, near), zero), narrow=kind)


def _dynamic_quantize(call: TranslatorCall) -> Sequence[View]:
    """Translate DynamicQuantizeLinear. The quantized range includes zero and all elements except NaN."""
    body, x, none = call.body, call.view(0), call.body.number(0.0)
    real = body.elementwise(Op.SELECT, body.elementwise(Op.EQUAL, x, x, truth=True), x, none)
    rows = merge_axes_last(body, real, range(len(x.shape))) if x.shape else body.reshaped(real, (1,))
    ends = []
    for reduction, op in ((Op.REDUCE_MIN, Op.MIN), (Op.REDUCE_MAX, Op.MAX)):
        buffer = body.new_buffer((), rows).buffer
        body.emit(reduction, View(buffer, rows.shape, (0,)), rows)
        ends.append(body.elementwise(op, View(buffer, (), ()), none))
    low, high = ends
    wide = body.elementwise(Op.DIV, body.elementwise(Op.SUB, high, low), body.number(255.0))
    scale = body.elementwise(Op.SELECT, body.elementwise(Op.EQUAL, low, high, truth=True), body.number(1.0), wide)
    start = body.elementwise(Op.SUB, none, body.elementwise(Op.DIV, low, scale))
    real = body.elementwise(Op.SELECT, body.elementwise(Op.EQUAL, start, start, truth=True), start, body.number(255.0))
    within = body.elementwise(Op.MAX, body.elementwise(Op.MIN, real, body.number(255.0)), none)
    zero = body.elementwise(Op.ROUND, within)
    return [_quantized(body, x, scale, zero, UINT8), scale, replace(zero, narrow=UINT8)]


def _quantize(call: TranslatorCall) -> Sequence[View]:
    _check_whole_axis_scale(call)
    x = call.view(0)
    scale, zero, kind = call.view(1), call.body.number(0.0), UINT8
    if call.has(2):
        kind = call.view(2).dtype
        zero = _bytes_as_floats(call, 2)
    elif call.node.attributes.get_int("output_dtype", UINT8) != UINT8:
        raise call.refuse("NATIVE-TYPE", "it does not return bytes")
    if x.dtype != scale.dtype or x.narrow is not None:
        raise call.refuse("NATIVE-TYPE", f"it reads {type_name(x.dtype)}")
    return [_quantized(call.body, x, _aligned_with_axis(call, scale, x), _aligned_with_axis(call, zero, x), kind)]


def _dequantize(call: TranslatorCall) -> Sequence[View]:
    _check_whole_axis_scale(call)
    scale = call.view(1)
    x = call.body.as_type(call.view(0), FLOAT) if call.view(0).dtype == INT32 else _bytes_as_floats(call, 0)
    numbers = (
        call.body.elementwise(Op.SUB, x, _aligned_with_axis(call, _bytes_as_floats(call, 2), x))
        if call.has(2) and call.view(0).narrow
        else x
    )
    return [call.body.elementwise(Op.MUL, numbers, _aligned_with_axis(call, scale, x))]


def _check_whole_axis_scale(call: TranslatorCall) -> None:
    if call.node.attributes.get_int("block_size", 0) or call.node.attributes.get_int("precision", 0):
        raise call.refuse("NATIVE-FORM", "it has a scale for each block, or computes in another type")


def _aligned_with_axis(call: TranslatorCall, view: View, x: View) -> View:
    """Reshape ``view``, a scale or a zero point, so that it broadcasts to ``x``.

    Raise PlanRefused unless ``view`` has one element, or one element for each index of the node's ``axis``.
    """
    if view.count == 1:
        return call.body.reshaped(view, ())
    axis = axis_of(call.node, 1, len(x.shape))
    if len(view.shape) != 1 or not 0 <= axis < len(x.shape) or view.shape[0] != x.shape[axis]:
        raise call.refuse("NATIVE-FORM", "its scale or zero point has neither one element nor one for each index of an axis")
    return call.body.reshaped(view, (view.count, *[1] * (len(x.shape) - axis - 1)))


def _matmul_integer(call: TranslatorCall) -> Sequence[View]:
    body, a = call.body, _bytes_as_floats(call, 0)
    b = body.captured_byte_matrix(call.value(1)) or _bytes_as_floats(call, 1)
    if (
        len(a.shape) < 1
        or len(b.shape) != 2
        or a.shape[-1] != b.shape[0]
        or not b.shape[0] <= _MOST
        or body.free.is_free(b.shape[0])
    ):
        raise call.refuse("NATIVE-SHAPE", f"the shapes {list(a.shape)} and {list(b.shape)} do not fit a product by a matrix")
    if call.has(2):
        zero = _bytes_as_floats(call, 2)
        if zero.count != 1:
            raise call.refuse("NATIVE-FORM", "its first zero point has more than one element")
        a = body.elementwise(Op.SUB, a, body.reshaped(zero, ()))
    rows = View(a.buffer, (1, *a.shape), (0, *a.strides), a.offset) if len(a.shape) == 1 else a
    rows = rows if rows.strides[-1] == 1 else body.copied(rows)
    inner, columns = b.shape
    result: View | None = None
    for start in range(0, inner, _PART):
        count = min(_PART, inner - start)
        left = View(rows.buffer, (*rows.shape[:-1], count), rows.strides, rows.offset + start * rows.strides[-1])
        right = View(b.buffer, (count, columns), b.strides, b.offset + start * b.strides[0])
        part = body.as_type(_product(body, left, right), INT32)
        result = part if result is None else body.elementwise(Op.ADD, result, part)
    assert result is not None
    result = _without_zero_point(call, rows, result)
    return [View(result.buffer, (*a.shape[:-1], columns), dense_strides((*a.shape[:-1], columns)), result.offset)]


def _product(body: Body, a: View, b: View) -> View:
    target = body.new_buffer((*a.shape[:-1], b.shape[1]), a)
    if b.buffer.origin == Origin.CAPTURED:
        return body.emit(Op.GEMM, target, a, _broadcast_matrix(b, a))
    return body.emit(Op.MATMUL, target, a, _broadcast_matrix(b, a))


def _broadcast_matrix(b: View, a: View) -> View:
    """Return a view that repeats the matrix ``b`` for each index of the batch axes of ``a``."""
    spread = broadcast(b, (*a.shape[:-2], *b.shape))
    return replace(spread, strides=(*spread.strides[:-2], *b.strides))


def _without_zero_point(call: TranslatorCall, rows: View, result: View) -> View:
    known = call.known(3) if call.has(3) else np.zeros(1)
    if known is None or known.size not in (1, result.shape[-1]):
        raise call.refuse("NATIVE-FORM", "the zero point of its second input is not constant, or does not fit the columns")
    if not known.any():
        return result
    body = call.body
    buffer = body.new_buffer(rows.shape[:-1], rows).buffer
    body.emit(Op.SUM, View(buffer, rows.shape, (*dense_strides(rows.shape[:-1]), 0)), rows)
    shape = (*rows.shape[:-1], 1)
    sums = body.as_type(View(buffer, shape, dense_strides(shape)), INT32)
    zeros = body.constant(known.astype(np.int32).reshape(-1) if known.size > 1 else known.astype(np.int32).reshape(()))
    return body.elementwise(Op.SUB, result, body.elementwise(Op.MUL, sums, zeros))


QUANTIZATION: dict[str, Translator] = {
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "MatMulInteger": _matmul_integer,
    "QuantizeLinear": _quantize,
}
