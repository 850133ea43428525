"""Comparisons, logic, choices and casts; inside a plan bools are the floats 0 and 1."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import onnx_ir as ir

from rewrites.native.call import Call
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
    x, to = call.view(0), call.node.attributes.get_int("to", 0)
    if to == ir.DataType.FLOAT:
        return [replace(x, truth=False)]
    if to != ir.DataType.BOOL:
        raise call.refuse("NATIVE-TYPE", f"it casts to {ir.DataType(to).name}")
    if x.truth:
        return [x]
    return [call.body.elementwise(Op.NOT, call.body.elementwise(Op.EQUAL, x, call.body.number(0.0), truth=True), truth=True)]


TRUTH: dict[str, _Translator] = {
    "And": _telling(Op.MIN),
    "Cast": _cast,
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
