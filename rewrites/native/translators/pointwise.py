"""Translates elementwise operators: arithmetic, activations, comparisons, logic and selections."""

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_array, const_scalar
from rewrites.native.body import Body
from rewrites.native.operations import DOUBLE, FLOAT, NUMPY, Op
from rewrites.native.operator_views import Translator, TranslatorCall
from rewrites.native.views import View
from rewrites.ops.versions import clip_bounds

__all__ = ["POINTWISE"]


def _elementwise(op: Op) -> Translator:
    return lambda call: [call.body.elementwise(op, call.view(0))]


def _with_parameters(op: Op, alpha: float, beta: float | None = None) -> Translator:
    def translate(call: TranslatorCall) -> Sequence[View]:
        a = call.node.attributes.get_float("alpha", alpha)
        b = 0.0 if beta is None else call.node.attributes.get_float("beta", beta)
        return [call.body.elementwise(op, call.view(0), immediates=(a, b))]

    return translate


def _gelu(call: TranslatorCall) -> Sequence[View]:
    if call.node.attributes.get_string("approximate", "none") != "none":
        return [_gelu_by_tanh(call.body, call.view(0))]
    return [call.body.elementwise(Op.GELU, call.view(0))]


def _gelu_by_tanh(body: Body, x: View) -> View:
    """Compute the tanh approximation of Gelu with the same operations as onnxruntime."""
    root = math.sqrt(2 / math.pi)
    cube, line, half, one = map(body.number, (0.044715 * root, root, 0.5, 1.0))
    inner = body.elementwise(Op.ADD, body.elementwise(Op.MUL, body.elementwise(Op.MUL, cube, x), x), line)
    bounded = body.elementwise(Op.TANH, body.elementwise(Op.MUL, x, inner))
    return body.elementwise(Op.MUL, body.elementwise(Op.MUL, half, x), body.elementwise(Op.ADD, bounded, one))


def _hard_swish(call: TranslatorCall) -> Sequence[View]:
    x = call.view(0)
    return [call.body.elementwise(Op.MUL, x, call.body.elementwise(Op.HARD_SIGMOID, x, immediates=(1 / 6, 0.5)))]


def _mish(call: TranslatorCall) -> Sequence[View]:
    x = call.view(0)
    bounded = call.body.elementwise(Op.TANH, call.body.elementwise(Op.SOFTPLUS, x))
    return [call.body.elementwise(Op.MUL, x, bounded)]


def _thresholded(call: TranslatorCall) -> Sequence[View]:
    x, body = call.view(0), call.body
    alpha = body.number(call.node.attributes.get_float("alpha", 1.0), x.dtype)
    above = body.elementwise(Op.GREATER, x, alpha, truth=True)
    return [body.elementwise(Op.SELECT, above, x, body.number(0.0, x.dtype))]


def _predicate(op: Op) -> Translator:
    return lambda call: [call.body.elementwise(op, *call.views, truth=True)]


def _xor(call: TranslatorCall) -> Sequence[View]:
    return [call.body.elementwise(Op.NOT, call.body.elementwise(Op.EQUAL, *call.views, truth=True), truth=True)]


def _where(call: TranslatorCall) -> Sequence[View]:
    condition, one, other = call.views
    return [call.body.elementwise(Op.WHERE, condition, one, other, truth=one.truth)]


_LARGEST = {dtype: float(np.finfo(NUMPY[dtype]).max) for dtype in (FLOAT, DOUBLE)}


def _pairwise(op: Op) -> Translator:
    """Return a translator that combines two or more inputs by the operation, from left to right."""

    def translate(call: TranslatorCall) -> Sequence[View]:
        first, *others = call.views
        return [reduce(lambda one, other: call.body.elementwise(op, one, other), others, first)]

    return translate


def _power(call: TranslatorCall) -> Sequence[View]:
    """Translate Pow as onnxruntime computes it.

    A single exponent of 2 or 3 becomes products. If exponent and base have different types, the power is computed in double.
    """
    body, base, exponent, known = call.body, call.view(0), call.view(1), const_scalar(call.value(1))
    if base.dtype not in _LARGEST or exponent.truth:
        raise call.refuse("NATIVE-TYPE", "its base is not a float")
    square = body.elementwise(Op.MUL, base, base)
    small = {2: square, 3: body.elementwise(Op.MUL, square, base)}
    if known in small and len(exponent.shape) <= len(base.shape):
        return [small[int(known)]]
    result = body.elementwise(Op.POW, body.as_type(base, DOUBLE), body.as_type(exponent, DOUBLE))
    if exponent.dtype == base.dtype:
        result = body.elementwise(Op.POW, base, exponent)
    for number, power in small.items() if exponent.count == 1 and known is None else ():
        same = body.elementwise(Op.EQUAL, exponent, body.number(number, exponent.dtype), truth=True)
        result = body.elementwise(Op.SELECT, same, power, body.as_type(result, base.dtype))
    return [body.as_type(result, base.dtype)]


def _clip(call: TranslatorCall) -> Sequence[View]:
    """Translate Clip. An absent bound is the largest finite float, because onnxruntime clips infinities.

    NaN and elements within the bounds stay unchanged. A bound that may be 0 or NaN becomes a comparison and a selection, not
    MAX or MIN, because these may replace -0 by 0, and return NaN if the bound is NaN.
    """
    body, result = call.body, call.view(0)
    largest = _LARGEST.get(result.dtype)
    for op, bound, sign in zip((Op.MAX, Op.MIN), clip_bounds(call.node, call.opset), (-1, 1), strict=True):
        if bound is None and largest is None:
            continue
        known = (
            const_array(bound) if isinstance(bound, ir.Value) else np.array(sign * largest if bound is None and largest else bound)
        )
        if known is None or known.size != 1 or known.item() == 0 or known.item() != known.item():
            limit = body.view(bound) if isinstance(bound, ir.Value) else body.number(0.0 if bound is None else bound, result.dtype)
            if limit.count != 1 or limit.dtype != result.dtype:
                raise call.refuse("NATIVE-FORM", "a bound is not a single number")
            limit = body.reshaped(limit, ())
            beyond = body.elementwise(Op.LESS if op == Op.MAX else Op.GREATER, result, limit, truth=True)
            result = body.elementwise(Op.SELECT, beyond, limit, result)
        else:
            result = body.elementwise(op, result, body.number(known.item(), result.dtype))
    return [result]


def _division(call: TranslatorCall) -> Sequence[View]:
    """Translate Div. If integers are divided by zero, the run fails, as in onnxruntime."""
    if call.body.enclosing_ifs:
        _check_divisor(call)
    return [call.body.elementwise(Op.DIV, *call.views)]


def _check_divisor(call: TranslatorCall) -> None:
    """Raise PlanRefused if the divisor is an integer that may be zero.

    The plan would then fail even in a branch that is not selected, but not in an fmod, which it computes with doubles.
    """
    known = call.known(1)
    if call.view(1).dtype not in _LARGEST and (known is None or not known.all()):
        raise call.refuse("NATIVE-FORM", "its divisor may be zero")


def _modulo(call: TranslatorCall) -> Sequence[View]:
    """Translate Mod. The result has the sign of the divisor, or with ``fmod`` that of the dividend.

    As in onnxruntime, fmod of integers is computed with doubles.
    """
    body, (divided, divisor), fmod = call.body, call.views, call.node.attributes.get_int("fmod", 0)
    if body.enclosing_ifs or fmod:
        _check_divisor(call)
    if not fmod:
        if divided.dtype in _LARGEST:
            raise call.refuse("NATIVE-FORM", "for floats it needs fmod")
        return [body.elementwise(Op.MOD, divided, divisor)]
    if divided.dtype in _LARGEST:
        return [body.elementwise(Op.MOD, divided, divisor)]
    result = body.elementwise(Op.MOD, body.as_type(divided, DOUBLE), body.as_type(divisor, DOUBLE))
    return [body.as_type(result, divided.dtype)]


def _prelu(call: TranslatorCall) -> Sequence[View]:
    x, body = call.view(0), call.body
    below = body.elementwise(Op.LESS, x, body.number(0.0, x.dtype), truth=True)
    return [body.elementwise(Op.SELECT, below, body.elementwise(Op.MUL, x, call.view(1)), x)]


POINTWISE: dict[str, Translator] = {
    "Add": _pairwise(Op.ADD),
    "Clip": _clip,
    "Div": _division,
    "Max": _pairwise(Op.MAX),
    "Min": _pairwise(Op.MIN),
    "Mod": _modulo,
    "Mul": _pairwise(Op.MUL),
    "PRelu": _prelu,
    "Pow": _power,
    "Sub": _pairwise(Op.SUB),
    "Sum": _pairwise(Op.ADD),
    "Abs": _elementwise(Op.ABS),
    "Ceil": _elementwise(Op.CEIL),
    "Cos": _elementwise(Op.COS),
    "Elu": _with_parameters(Op.ELU, 1.0),
    "Erf": _elementwise(Op.ERF),
    "Exp": _elementwise(Op.EXP),
    "Floor": _elementwise(Op.FLOOR),
    "Gelu": _gelu,
    "HardSigmoid": _with_parameters(Op.HARD_SIGMOID, 0.2, 0.5),
    "HardSwish": _hard_swish,
    "LeakyRelu": _with_parameters(Op.LEAKY_RELU, 0.01),
    "Log": _elementwise(Op.LOG),
    "Mish": _mish,
    "Neg": _elementwise(Op.NEG),
    "Reciprocal": _elementwise(Op.RECIPROCAL),
    "Relu": _elementwise(Op.RELU),
    "Round": _elementwise(Op.ROUND),
    "Sigmoid": _elementwise(Op.SIGMOID),
    "Sign": _elementwise(Op.SIGN),
    "Sin": _elementwise(Op.SIN),
    "Softplus": _elementwise(Op.SOFTPLUS),
    "Softsign": _elementwise(Op.SOFTSIGN),
    "Sqrt": _elementwise(Op.SQRT),
    "Tanh": _elementwise(Op.TANH),
    "ThresholdedRelu": _thresholded,
    "And": _predicate(Op.MIN),
    "Equal": _predicate(Op.EQUAL),
    "Greater": _predicate(Op.GREATER),
    "GreaterOrEqual": _predicate(Op.GREATER_OR_EQUAL),
    "Less": _predicate(Op.LESS),
    "LessOrEqual": _predicate(Op.LESS_OR_EQUAL),
    "Not": _predicate(Op.NOT),
    "Or": _predicate(Op.MAX),
    "Where": _where,
    "Xor": _xor,
}
