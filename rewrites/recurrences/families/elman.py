"""Elman RNN:  h' = f(x @ W + h @ R + b)."""

import numpy as np

from rewrites.recurrences.cell import Cell, Function
from rewrites.recurrences.families.candidate import Candidate
from rewrites.recurrences.gates import gate

__all__ = ["elman"]


def elman(one: Candidate) -> Cell | None:
    """Recognise it."""
    activation = gate(one.next)
    if activation is None:
        return None
    weights = one.weights(activation.of)
    if weights is None or not weights.r.any():
        return None
    none = np.zeros(one.size)
    functions = (Function.of(activation),)
    return Cell("RNN", one.hidden, None, one.inputs, weights.w, weights.r, weights.bias, none, functions)
