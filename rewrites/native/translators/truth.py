"""Comparisons, logic, choices and casts; bools are 0 and 1 of the type that made them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import onnx_ir as ir

from rewrites.native.call import Call
from rewrites.native.elements import BOOL, NUMPY
from rewrites.native.operations import Op
from rewrites.native.views import View

__all__ = ["TRUTH"]

_Translator = Callable[[Call], Sequence[View]]


def _telling(op: Op) -> _Translator:
    return lambda call: [call.body.elementwise(op, *call.views, truth=True)]


def _xor(call: Call) -> Sequence[View]:
    return [call.body.elementwise(Op.NOT, call.body.elementwise(Op.EQUAL, *call.views, truth=True), truth=True)]


def _where(call: Call) -> Sequence[View]:
    condition, one, other = call.views
    return [call.body.elementwise(Op.WHERE, condition, one, other, truth=one.truth)]


def _cast(call: Call) -> Sequence[View]:
    return _as_type(call, call.node.attributes.get_int("to", 0))


def _cast_like(call: Call) -> Sequence[View]:
    return _as_type(call, call.view(1).dtype)


def _as_type(call: Call, to: int) -> Sequence[View]:
    x = call.view(0)
    if to not in NUMPY:
        raise call.refuse("NATIVE-TYPE", f"it casts to {ir.DataType(to).name}")
    if to != BOOL:
        return [replace(call.body.as_type(x, to), truth=False)]
    if x.truth:
        return [x]
    none = call.body.elementwise(Op.EQUAL, x, call.body.number(0, x.dtype), truth=True)
    return [call.body.elementwise(Op.NOT, none, truth=True)]


TRUTH: dict[str, _Translator] = {
    "And": _telling(Op.MIN),
    "Cast": _cast,
    "CastLike": _cast_like,
    "Equal": _telling(Op.EQUAL),
    "Greater": _telling(Op.GREATER),
    "GreaterOrEqual": _telling(Op.GREATER_OR_EQUAL),
    "Less": _telling(Op.LESS),
    "LessOrEqual": _telling(Op.LESS_OR_EQUAL),
    "Not": _telling(Op.NOT),
    "Or": _telling(Op.MAX),
    "Where": _where,
    "Xor": _xor,
}
