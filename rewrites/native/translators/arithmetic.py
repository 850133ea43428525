"""Arithmetic element by element."""

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_array, const_scalar
from rewrites.native.call import Call
from rewrites.native.elements import DOUBLE, FLOAT, NUMPY
from rewrites.native.operations import Op
from rewrites.native.views import View
from rewrites.ops.versions import clip_bounds

__all__ = ["ARITHMETIC"]

_Translator = Callable[[Call], Sequence[View]]
_LARGEST = {dtype: float(np.finfo(NUMPY[dtype]).max) for dtype in (FLOAT, DOUBLE)}


def _pairwise(op: Op) -> _Translator:
    """The operation on two inputs, or on more from the left."""

    def translate(call: Call) -> Sequence[View]:
        first, *others = call.views
        return [reduce(lambda one, other: call.body.elementwise(op, one, other), others, first)]

    return translate


def _power(call: Call) -> Sequence[View]:
    """Squares and cubes, which onnxruntime multiplies out."""
    base, exponent, value = call.view(0), const_scalar(call.value(1)), call.value(1)
    rank = 0 if value is None or value.shape is None else len(value.shape)
    if exponent not in (2, 3) or rank > len(base.shape) or base.dtype not in _LARGEST:
        raise call.refuse("NATIVE-FORM", "its exponent is neither 2 nor 3, or its base no float")
    square = call.body.elementwise(Op.MUL, base, base)
    return [square if exponent == 2 else call.body.elementwise(Op.MUL, square, base)]


def _clip(call: Call) -> Sequence[View]:
    """A float's bound that is left out is the largest number, to which onnxruntime clips infinities then."""
    result = call.view(0)
    largest = _LARGEST.get(result.dtype)
    for op, bound, sign in zip((Op.MAX, Op.MIN), clip_bounds(call.node, call.opset), (-1, 1), strict=True):
        if bound is None and largest is None:
            continue
        known = (
            const_array(bound) if isinstance(bound, ir.Value) else np.array(sign * largest if bound is None and largest else bound)
        )
        if known is None or known.size != 1:
            raise call.refuse("NATIVE-FORM", "its bounds are not constant")
        result = call.body.elementwise(op, result, call.body.number(known.item(), result.dtype))
    return [result]


def _modulo(call: Call) -> Sequence[View]:
    if call.node.attributes.get_int("fmod", 0):
        raise call.refuse("NATIVE-FORM", "its remainder has the sign of what is divided")
    return [call.body.elementwise(Op.MOD, *call.views)]


def _prelu(call: Call) -> Sequence[View]:
    x, body = call.view(0), call.body
    below = body.elementwise(Op.LESS, x, body.number(0.0, x.dtype), truth=True)
    return [body.elementwise(Op.SELECT, below, body.elementwise(Op.MUL, x, call.view(1)), x)]


ARITHMETIC: dict[str, _Translator] = {
    "Add": _pairwise(Op.ADD),
    "Clip": _clip,
    "Div": _pairwise(Op.DIV),
    "Max": _pairwise(Op.MAX),
    "Min": _pairwise(Op.MIN),
    "Mod": _modulo,
    "Mul": _pairwise(Op.MUL),
    "PRelu": _prelu,
    "Pow": _power,
    "Sub": _pairwise(Op.SUB),
    "Sum": _pairwise(Op.ADD),
}
