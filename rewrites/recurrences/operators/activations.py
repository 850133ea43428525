"""Activations, also from the operators that spell one otherwise (Max(x, 0) is Relu, Clip(a * x + b, 0, 1) is HardSigmoid)."""

from collections.abc import Callable, Sequence

import onnx_ir as ir

from rewrites.recurrences.interpretation import Interpretation, Meaning
from rewrites.recurrences.polynomial import Polynomial
from rewrites.spelling import clip_bounds
from rewrites.values import const_scalar

__all__ = ["ACTIVATIONS"]

_Read = Callable[[Interpretation, ir.Node], Sequence[Meaning] | None]
_DEFAULTS = {
    "Elu": (1.0, None),
    "HardSigmoid": (0.2, 0.5),
    "LeakyRelu": (0.01, None),
    "ThresholdedRelu": (1.0, None),
}


def _applied(reading: Interpretation, node: ir.Node, name: str, alpha: float = 0.0, beta: float = 0.0) -> Sequence[Meaning] | None:
    x = reading.features(node.inputs[0])
    return None if x is None else [x.mapped(lambda run: Polynomial.activation(name, run, alpha, beta))]


def _plain(name: str) -> _Read:
    return lambda reading, node: _applied(reading, node, name)


def _with_parameters(name: str) -> _Read:
    alpha, beta = _DEFAULTS[name]

    def read(reading: Interpretation, node: ir.Node) -> Sequence[Meaning] | None:
        a = node.attributes.get_float("alpha", alpha)
        b = 0.0 if beta is None else node.attributes.get_float("beta", beta)
        return _applied(reading, node, name, a, b)

    return read


def _max(reading: Interpretation, node: ir.Node) -> Sequence[Meaning] | None:
    """``Max(x, 0)`` is ``Relu(x)``."""
    if len(node.inputs) != 2:
        return None
    for x, bound in (node.inputs, reversed(node.inputs)):
        features = reading.features(x)
        if features is not None and const_scalar(bound) == 0:
            return [features.mapped(lambda run: Polynomial.activation("Relu", run))]
    return None


def _clip(reading: Interpretation, node: ir.Node) -> Sequence[Meaning] | None:
    """``Clip(x, 0, 1)`` is ``HardSigmoid(x)`` with alpha 1 and beta 0; ``Clip(x, 0)`` is ``Relu(x)``."""
    low, high = (_number(bound) for bound in clip_bounds(node, reading.opset))
    if low == 0.0 and high is None:
        return _applied(reading, node, "Relu")
    return _applied(reading, node, "HardSigmoid", 1.0, 0.0) if (low, high) == (0.0, 1.0) else None


def _number(bound: object) -> float | None:
    if isinstance(bound, ir.Value):
        number = const_scalar(bound)
        return float("nan") if number is None else float(number)
    if not isinstance(bound, int | float):
        return None
    return None if abs(bound) > 1e38 else float(bound)


ACTIVATIONS: dict[str, _Read] = {
    **{name: _plain(name) for name in ("Exp", "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh")},
    **{name: _with_parameters(name) for name in _DEFAULTS},
    "Clip": _clip,
    "Max": _max,
}
