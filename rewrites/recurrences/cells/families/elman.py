"""Elman RNN:  h' = f(x @ W + h @ R + b).

Not where f is nothing and R has zeros: what units then do by themselves, such as to hand values on, would become a whole matrix, in
which one infinite unit makes all others NaN.
"""

import numpy as np

from rewrites.recurrences.cells.cell import Cell
from rewrites.recurrences.cells.families.candidate import Candidate
from rewrites.recurrences.cells.gates import gate

__all__ = ["elman"]


def elman(one: Candidate) -> Cell | None:
    """Recognise it."""
    activation = gate(one.next)
    if activation is None:
        return None
    weights = one.weights(activation.of)
    if weights is None or not weights.r.any():
        return None
    if activation.name == "Affine" and one.size > 1 and (weights.r == 0).any():
        return None
    none = np.zeros(one.size)
    functions = (activation.function,)
    return Cell("RNN", one.hidden, None, one.inputs, weights.w, weights.r, weights.bias, none, functions)
