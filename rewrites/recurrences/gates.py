"""Reads gates: a polynomial as an activation, and its argument as weights on the inputs and on the hidden state."""

from collections.abc import Hashable, Sequence

import numpy as np

from rewrites.recurrences.affine import Affine
from rewrites.recurrences.polynomial import Activation, Polynomial

__all__ = ["NATIVE", "complement", "gate", "split_affine"]

NATIVE = frozenset({"Sigmoid", "Tanh", "Relu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu", "Softsign"})
"""The activations the recurrent operators have, among those the interpretation gives.

Not Softplus: onnxruntime's recurrent kernels compute it as log(1 + exp(x)), which overflows.
"""


def gate(polynomial: Polynomial) -> Activation | None:
    """Give ``polynomial`` as one activation the recurrent operators have.

    ``1 - sigmoid(a)`` is ``sigmoid(-a)``.
    """
    if len(polynomial.products) != 1 or not polynomial.affine.is_constant:
        return None
    (product,) = polynomial.products.values()
    atom = product.atoms[0]
    if len(product.atoms) != 1 or not isinstance(atom, Activation) or atom.name not in NATIVE:
        return None
    factor, added = product.coefficient, polynomial.affine.bias
    if (factor == 1).all() and not added.any():
        return atom
    if (factor == -1).all() and (added == 1).all():
        return complement(atom)
    return None


def complement(activation: Activation) -> Activation | None:
    """Give one minus ``activation`` as an activation."""
    if activation.name == "Sigmoid" or (activation.name == "HardSigmoid" and activation.beta == 0.5):
        return Activation(activation.name, activation.alpha, activation.beta, activation.of.scaled(-1.0))
    return None


def split_affine(affine: Affine, inputs: Sequence[tuple[Hashable, int]], hidden: Hashable) -> tuple[np.ndarray, np.ndarray] | None:
    """Give the weights of ``affine`` on ``inputs`` [width, input width] and on ``hidden`` [width, hidden].

    None where it has other sources; no columns for ``hidden`` where that is none of them.
    """
    known = {key for key, _ in inputs}
    if not affine.terms.keys() <= known | {hidden}:
        return None
    parts = [affine.terms.get(key, np.zeros((width, affine.width))) for key, width in inputs]
    w = np.concatenate(parts, axis=0).T if parts else np.zeros((affine.width, 0))
    size = affine.terms.get(hidden)
    return w, np.zeros((affine.width, 0)) if size is None else size.T
