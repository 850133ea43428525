"""Reads gates: a polynomial as an activation, and its argument as weights on the inputs and on the hidden state.

Works round ORT-RECURRENT-SOFTPLUS.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from rewrites.recurrences.cells.linear_map import Affine
from rewrites.recurrences.cells.polynomial import Activation, Polynomial

__all__ = ["NATIVE", "complement", "gate", "scaled", "split_affine"]

NATIVE = frozenset({"Sigmoid", "Tanh", "Relu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu", "Softsign"})
"""The activations the recurrent operators have, among those the interpretation gives.

Not Softplus: onnxruntime's recurrent kernels compute it as log(1 + exp(x)), which overflows.
"""


def gate(polynomial: Polynomial) -> Activation | None:
    """Return ``polynomial`` as one activation the recurrent operators have.

    ``1 - sigmoid(a)`` is ``sigmoid(-a)``, a number times tanh is ``ScaledTanh``, and an affine map alone is ``Affine``.
    """
    if polynomial.is_affine:
        return Activation("Affine", 1.0, 0.0, polynomial)
    if len(polynomial.products) != 1 or not polynomial.affine.is_constant:
        return None
    (product,) = polynomial.products.values()
    atom = product.atoms[0]
    if len(product.atoms) != 1 or not isinstance(atom, Activation) or atom.name not in NATIVE:
        return None
    factor, added = product.coefficient, polynomial.affine.bias
    if not added.any():
        return scaled(atom, factor)
    if (factor == -1).all() and (added == 1).all():
        return complement(atom)
    return None


def scaled(atom: Activation, factor: np.ndarray) -> Activation | None:
    """Return a number times an activation as an activation."""
    if (factor == 1).all():
        return atom
    if atom.name != "Tanh" or not (factor == factor[0]).all():
        return None
    if factor[0] < 0:
        return scaled(replace(atom, of=atom.of.scaled(-1.0)), -factor)
    return replace(atom, name="ScaledTanh", alpha=float(factor[0]), beta=1.0)


def complement(activation: Activation) -> Activation | None:
    """Return one minus ``activation`` as an activation."""
    opposite = activation.of.scaled(-1.0)
    if activation.name == "Sigmoid" or (activation.name == "HardSigmoid" and activation.beta == 0.5):
        return replace(activation, of=opposite)
    if activation.name == "HardSigmoid" and (activation.alpha, activation.beta, activation.clip) == (1.0, 0.0, None):
        return replace(activation, of=opposite.plus(Polynomial.constant(np.ones(opposite.width))))
    return None


def split_affine(affine: Affine, inputs: Sequence[tuple[Hashable, int]], hidden: Hashable) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the weights of ``affine`` on ``inputs`` [width, input width] and on ``hidden`` [width, hidden].

    None where it has other sources; no columns for ``hidden`` where that is none of them.
    """
    known = {key for key, _ in inputs}
    if not affine.terms.keys() <= known | {hidden}:
        return None
    parts = [affine.terms.get(key, np.zeros((width, affine.width))) for key, width in inputs]
    w = np.concatenate(parts, axis=0).T if parts else np.zeros((affine.width, 0))
    size = affine.terms.get(hidden)
    return w, np.zeros((affine.width, 0)) if size is None else size.T
