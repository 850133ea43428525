"""Functions of one element."""

import math
from collections.abc import Callable, Sequence

from rewrites.native.body import Body
from rewrites.native.call import Call
from rewrites.native.operations import Op
from rewrites.native.views import View

__all__ = ["ACTIVATIONS"]

_Translator = Callable[[Call], Sequence[View]]


def _plain(op: Op) -> _Translator:
    return lambda call: [call.body.elementwise(op, call.view(0))]


def _with_parameters(op: Op, alpha: float, beta: float | None = None) -> _Translator:
    def translate(call: Call) -> Sequence[View]:
        a = call.node.attributes.get_float("alpha", alpha)
        b = 0.0 if beta is None else call.node.attributes.get_float("beta", beta)
        return [call.body.elementwise(op, call.view(0), immediates=(a, b))]

    return translate


def _gelu(call: Call) -> Sequence[View]:
    if call.node.attributes.get_string("approximate", "none") != "none":
        return [_gelu_by_tanh(call.body, call.view(0))]
    return [call.body.elementwise(Op.GELU, call.view(0))]


def _gelu_by_tanh(body: Body, x: View) -> View:
    """As onnxruntime calculates it, step by step."""
    root = math.sqrt(2 / math.pi)
    cube, line, half, one = map(body.number, (0.044715 * root, root, 0.5, 1.0))
    inner = body.elementwise(Op.ADD, body.elementwise(Op.MUL, body.elementwise(Op.MUL, cube, x), x), line)
    bounded = body.elementwise(Op.TANH, body.elementwise(Op.MUL, x, inner))
    return body.elementwise(Op.MUL, body.elementwise(Op.MUL, half, x), body.elementwise(Op.ADD, bounded, one))


def _hard_swish(call: Call) -> Sequence[View]:
    x = call.view(0)
    return [call.body.elementwise(Op.MUL, x, call.body.elementwise(Op.HARD_SIGMOID, x, immediates=(1 / 6, 0.5)))]


def _mish(call: Call) -> Sequence[View]:
    x = call.view(0)
    bounded = call.body.elementwise(Op.TANH, call.body.elementwise(Op.SOFTPLUS, x))
    return [call.body.elementwise(Op.MUL, x, bounded)]


def _thresholded(call: Call) -> Sequence[View]:
    x, body = call.view(0), call.body
    alpha = body.number(call.node.attributes.get_float("alpha", 1.0), x.dtype)
    above = body.elementwise(Op.GREATER, x, alpha, truth=True)
    return [body.elementwise(Op.SELECT, above, x, body.number(0.0, x.dtype))]


ACTIVATIONS: dict[str, _Translator] = {
    "Abs": _plain(Op.ABS),
    "Ceil": _plain(Op.CEIL),
    "Cos": _plain(Op.COS),
    "Elu": _with_parameters(Op.ELU, 1.0),
    "Erf": _plain(Op.ERF),
    "Exp": _plain(Op.EXP),
    "Floor": _plain(Op.FLOOR),
    "Gelu": _gelu,
    "HardSigmoid": _with_parameters(Op.HARD_SIGMOID, 0.2, 0.5),
    "HardSwish": _hard_swish,
    "LeakyRelu": _with_parameters(Op.LEAKY_RELU, 0.01),
    "Log": _plain(Op.LOG),
    "Mish": _mish,
    "Neg": _plain(Op.NEG),
    "Reciprocal": _plain(Op.RECIPROCAL),
    "Relu": _plain(Op.RELU),
    "Round": _plain(Op.ROUND),
    "Sigmoid": _plain(Op.SIGMOID),
    "Sign": _plain(Op.SIGN),
    "Sin": _plain(Op.SIN),
    "Softplus": _plain(Op.SOFTPLUS),
    "Softsign": _plain(Op.SOFTSIGN),
    "Sqrt": _plain(Op.SQRT),
    "Tanh": _plain(Op.TANH),
    "ThresholdedRelu": _thresholded,
}
