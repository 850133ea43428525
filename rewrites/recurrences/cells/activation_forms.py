"""The one form in which each activation is read, however its arithmetic is written.

    HardSigmoid(x, a, b)        ->  HardSigmoid(a * x + b, 1, 0)
    Clip(x, -3, 3) / 6 + 0.5    ->  HardSigmoid(x / 6 + 0.5, 1, 0)
    (1 + tanh(x / 2)) / 2       ->  Sigmoid(x),  and  2 * sigmoid(2 * x) - 1  ->  Tanh(x)
    f(Clip(x, -c, c))           ->  f with its argument clipped,  and  Clip(x, 0, c)  ->  Relu so

Factors of Clip are compared in float32, in which the body computes.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rewrites.recurrences.cells.linear_map import Affine

if TYPE_CHECKING:
    from rewrites.recurrences.cells.polynomial import Activation, Polynomial, Product

__all__ = ["as_one_activation", "normal_form"]

_NEVER_CLIPPED = frozenset({"Clip", "Exp", "Softplus"})


def normal_form(atom: "Activation") -> "Activation":
    """Return an activation in its normal form."""
    if atom.name in ("Clip", "Relu"):
        return _clipped(atom)
    if atom.name == "HardSigmoid" and (atom.alpha, atom.beta) == (1.0, 0.0):
        return atom
    atom = _with_clip(atom)
    if atom.name == "HardSigmoid" and atom.clip is None:
        constant = type(atom.of).constant(np.full(atom.of.width, atom.beta))
        return replace(atom, alpha=1.0, beta=0.0, of=atom.of.scaled(atom.alpha).plus(constant))
    return atom


def _with_clip(atom: "Activation") -> "Activation":
    """Take a symmetric Clip of the argument into the activation."""
    if atom.name in _NEVER_CLIPPED or len(atom.of.products) != 1 or not atom.of.affine.is_zero:
        return atom
    (product,) = atom.of.products.values()
    inner, factor = product.atoms[0], _uniform(product.coefficient)
    if len(product.atoms) != 1 or isinstance(inner, Affine) or inner.name != "Clip" or factor is None or inner.alpha != -inner.beta:
        return atom
    return replace(atom, clip=abs(factor) * inner.beta, of=inner.of.scaled(factor))


def _clipped(atom: "Activation") -> "Activation":
    """Return Clip or Relu; one of another is one."""
    low, high = _bounds(atom)
    inner = atom.of.single
    if inner is not None and inner.name in ("Clip", "Relu"):
        below, above = (min(max(bound, low), high) for bound in _bounds(inner))
        if below < above:
            low, high, atom = below, above, inner
    if (low, high) == (0.0, math.inf):
        return replace(atom, name="Relu", alpha=0.0, beta=0.0, clip=None)
    if low == 0.0:
        return replace(atom, name="Relu", alpha=0.0, beta=0.0, clip=high)
    return replace(atom, name="Clip", alpha=low, beta=high, clip=None)


def _bounds(atom: "Activation") -> tuple[float, float]:
    if atom.name == "Relu":
        return 0.0, math.inf if atom.clip is None else atom.clip
    return atom.alpha, atom.beta


def as_one_activation(affine: Affine, products: "Mapping[Hashable, Product]") -> "Polynomial | None":
    """Return a number times an activation plus a number as an activation, where it is one."""
    if len(products) != 1 or not affine.is_constant:
        return None
    (product,) = products.values()
    atom = product.atoms[0]
    factor, added = _uniform(product.coefficient), _uniform(affine.bias)
    if len(product.atoms) != 1 or isinstance(atom, Affine) or factor is None or added is None or (factor, added) == (1.0, 0.0):
        return None
    found: Activation | None = None
    if atom.name == "Tanh" and (factor, added) == (0.5, 0.5):
        found = replace(atom, name="Sigmoid", of=atom.of.scaled(2.0), clip=None if atom.clip is None else 2.0 * atom.clip)
    elif atom.name == "Sigmoid" and (factor, added) == (2.0, -1.0):
        found = replace(atom, name="Tanh", of=atom.of.scaled(0.5), clip=None if atom.clip is None else 0.5 * atom.clip)
    elif atom.name in ("Clip", "Relu") and _is_unit(factor, added, *_bounds(atom)):
        constant = type(atom.of).constant(np.full(atom.of.width, added))
        found = replace(atom, name="HardSigmoid", alpha=1.0, beta=0.0, of=atom.of.scaled(factor).plus(constant), clip=None)
    return None if found is None else type(found.of).of_atom(found)


def _is_unit(factor: float, added: float, low: float, high: float) -> bool:
    """Whether ``[low, high]`` is stretched to ``[0, 1]``."""
    if factor <= 0 or math.isinf(low) or math.isinf(high):
        return False
    lowest, highest = (np.float32(factor) * np.float32(bound) + np.float32(added) for bound in (low, high))
    return bool(abs(lowest) <= 1e-7 and abs(highest - 1) <= 1e-7)


def _uniform(numbers: np.ndarray) -> float | None:
    return float(numbers[0]) if len(numbers) and (numbers == numbers[0]).all() else None
