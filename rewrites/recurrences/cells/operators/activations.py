"""Activations, also from the operators that spell one otherwise (Max(x, 0) is Relu, Clip(a * x + b, 0, 1) is HardSigmoid)."""

import math
from collections.abc import Callable, Sequence

import onnx_ir as ir

from rewrites.graph.values import const_scalar, rank_of
from rewrites.ops.versions import clip_bounds
from rewrites.recurrences.cells.features import Features
from rewrites.recurrences.cells.polynomial import Polynomial
from rewrites.recurrences.cells.reading import Meaning, Reading

__all__ = ["ACTIVATIONS"]

_Read = Callable[[Reading, ir.Node], Sequence[Meaning] | None]
_DEFAULTS = {
    "Elu": (1.0, None),
    "HardSigmoid": (0.2, 0.5),
    "LeakyRelu": (0.01, None),
    "ThresholdedRelu": (1.0, None),
}


def _applied(reading: Reading, node: ir.Node, name: str, alpha: float = 0.0, beta: float = 0.0) -> Sequence[Meaning] | None:
    x = reading.features(node.inputs[0])
    return None if x is None else [x.mapped(lambda run: Polynomial.activation(name, run, alpha, beta))]


def _plain(name: str) -> _Read:
    return lambda reading, node: _applied(reading, node, name)


def _with_parameters(name: str) -> _Read:
    alpha, beta = _DEFAULTS[name]

    def read(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
        a = node.attributes.get_float("alpha", alpha)
        b = 0.0 if beta is None else node.attributes.get_float("beta", beta)
        return _applied(reading, node, name, a, b)

    return read


def _bounded(low: float, high: float, features: Features) -> Sequence[Meaning]:
    return [features.mapped(lambda run: Polynomial.activation("Clip", run, low, high))]


def _extremum(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    """``Max(x, low)`` and ``Min(x, high)`` are halves of a Clip."""
    if len(node.inputs) != 2:
        return None
    for x, bound in (node.inputs, reversed(node.inputs)):
        features, number = reading.features(x), const_scalar(bound)
        if features is None or number is None or math.isnan(number) or bound is None or x is None:
            continue
        if (rank_of(bound) or 0) <= features.lead + len(features.shape):
            return (
                _bounded(float(number), math.inf, features)
                if node.op_type == "Max"
                else _bounded(-math.inf, float(number), features)
            )
    return None


def _clip(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    low, high = (_number(bound) for bound in clip_bounds(node, reading.opset))
    features = reading.features(node.inputs[0])
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    return _bounded(low, high, features) if features is not None and low < high else None


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
    "Max": _extremum,
    "Min": _extremum,
}
