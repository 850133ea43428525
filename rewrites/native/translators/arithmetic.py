"""Arithmetic element by element."""

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from rewrites.graph.values import const_scalar
from rewrites.native.call import Call
from rewrites.native.operations import Op
from rewrites.native.views import View
from rewrites.ops.versions import clip_bounds

__all__ = ["ARITHMETIC"]

_Translator = Callable[[Call], Sequence[View]]
_LARGEST = float(np.finfo(np.float32).max)


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
    if exponent not in (2, 3) or rank > len(base.shape):
        raise call.refuse("NATIVE-FORM", "its exponent is neither 2 nor 3")
    square = call.body.elementwise(Op.MUL, base, base)
    return [square if exponent == 2 else call.body.elementwise(Op.MUL, square, base)]


def _clip(call: Call) -> Sequence[View]:
    """A bound that is left out is the largest number, to which onnxruntime clips infinities then."""
    result = call.view(0)
    for op, bound, absent in zip((Op.MAX, Op.MIN), clip_bounds(call.node, call.opset), (-_LARGEST, _LARGEST), strict=True):
        number = absent if bound is None else bound if isinstance(bound, float | int) else const_scalar(bound)
        if number is None:
            raise call.refuse("NATIVE-FORM", "its bounds are not constant")
        result = call.body.elementwise(op, result, call.body.number(float(number)))
    return [result]


def _prelu(call: Call) -> Sequence[View]:
    x, body = call.view(0), call.body
    below = body.elementwise(Op.LESS, x, body.number(0.0), truth=True)
    return [body.elementwise(Op.WHERE, below, body.elementwise(Op.MUL, x, call.view(1)), x)]


ARITHMETIC: dict[str, _Translator] = {
    "Add": _pairwise(Op.ADD),
    "Clip": _clip,
    "Div": _pairwise(Op.DIV),
    "Max": _pairwise(Op.MAX),
    "Min": _pairwise(Op.MIN),
    "Mul": _pairwise(Op.MUL),
    "PRelu": _prelu,
    "Pow": _power,
    "Sub": _pairwise(Op.SUB),
    "Sum": _pairwise(Op.ADD),
}
