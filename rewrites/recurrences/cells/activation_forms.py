"""Bring activations to a normal form, so that different formulas for a function become equal.

    HardSigmoid(x, a, b)        ->  HardSigmoid(a * x + b, 1, 0)
    Clip(x, -3, 3) / 6 + 0.5    ->  HardSigmoid(x / 6 + 0.5, 1, 0)
    (1 + tanh(x / 2)) / 2       ->  Sigmoid(x),  and  2 * sigmoid(2 * x) - 1  ->  Tanh(x)
    1 - sigmoid(x)              ->  Sigmoid(-x)
    -2 * tanh(x)                ->  ScaledTanh(-x, 2, 1)

To decide whether a Clip is a HardSigmoid, its bounds are computed in float32, the type in which the body computes.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from rewrites.ops.rnn.functions import Function

__all__ = ["ActivationForm", "complement", "merge_clips", "multiple", "normal_form", "scaled_and_shifted"]


@dataclass(frozen=True)
class ActivationForm:
    """A function of a scaled argument: ``function(factor * x + added)``, without ``added`` if it is None."""

    function: Function
    factor: float
    added: float | None = None


def normal_form(function: Function) -> ActivationForm:
    """Return the normal form of ``function``.

    A Clip with the lower bound 0 becomes a Relu. The alpha and beta of a HardSigmoid move into the argument.
    """
    if function.name in ("Clip", "Relu"):
        return ActivationForm(_clip(*_bounds(function)), 1.0)
    if function.name == "HardSigmoid" and function.clip is None and (function.alpha, function.beta) != (1.0, 0.0):
        return ActivationForm(replace(function, alpha=1.0, beta=0.0), function.alpha, function.beta)
    return ActivationForm(function, 1.0)


def merge_clips(outer: Function, inner: Function) -> Function | None:
    """Return the Clip or Relu that equals ``outer(inner(x))``, or None if there is none."""
    if not {outer.name, inner.name} <= {"Clip", "Relu"}:
        return None
    low, high = _bounds(outer)
    below, above = (min(max(bound, low), high) for bound in _bounds(inner))
    return _clip(below, above) if below < above else None


def _clip(low: float, high: float) -> Function:
    if low == 0.0:
        return Function("Relu", clip=None if high == math.inf else high)
    return Function("Clip", low, high)


def _bounds(function: Function) -> tuple[float, float]:
    if function.name == "Relu":
        return 0.0, math.inf if function.clip is None else function.clip
    return function.alpha, function.beta


def scaled_and_shifted(function: Function, factor: float, added: float) -> ActivationForm | None:
    """Return one activation that equals ``factor * function(x) + added``, or None if there is none.

    For example, ``0.5 * tanh(x) + 0.5`` equals ``sigmoid(2 * x)``.
    """
    if (factor, added) == (1.0, 0.0):
        return None
    doubled, halved = (None if function.clip is None else scale * function.clip for scale in (2.0, 0.5))
    if function.name == "Tanh" and (factor, added) == (0.5, 0.5):
        return ActivationForm(replace(function, name="Sigmoid", clip=doubled), 2.0)
    if function.name == "Sigmoid" and (factor, added) == (2.0, -1.0):
        return ActivationForm(replace(function, name="Tanh", clip=halved), 0.5)
    if function.name in ("Clip", "Relu") and _is_unit(factor, added, *_bounds(function)):
        return ActivationForm(Function("HardSigmoid", 1.0), factor, added)
    return None


def _is_unit(factor: float, added: float, low: float, high: float) -> bool:
    """Return True if ``factor * x + added`` maps ``[low, high]`` to ``[0, 1]``."""
    if factor <= 0 or math.isinf(low) or math.isinf(high):
        return False
    lowest, highest = (np.float32(factor) * np.float32(bound) + np.float32(added) for bound in (low, high))
    return bool(abs(lowest) <= 1e-7 and abs(highest - 1) <= 1e-7)


def complement(function: Function) -> ActivationForm | None:
    """Return one activation of a recurrent operator that equals ``1 - function(x)``, or None."""
    if function.name == "Sigmoid" or (function.name == "HardSigmoid" and function.beta == 0.5):
        return ActivationForm(function, -1.0)
    return ActivationForm(function, -1.0, 1.0) if function == Function("HardSigmoid", 1.0) else None


def multiple(function: Function, factor: float) -> ActivationForm | None:
    """Return one activation of a recurrent operator that equals ``factor * function(x)``, or None."""
    if factor == 1:
        return ActivationForm(function, 1.0)
    if function.name != "Tanh":
        return None
    if factor < 0:
        opposite = multiple(function, -factor)
        return None if opposite is None else replace(opposite, factor=-1.0)
    return ActivationForm(replace(function, name="ScaledTanh", alpha=factor, beta=1.0), 1.0)
