"""GRU:  h' = (1 - z) * n + z * h  with  z = f(...), r = f(...) and

    n = g(x @ W + (r * h) @ R + b)            or, with linear_before_reset,
    n = g(x @ W + b + r * (h @ R + c))

A cell that keeps ``(1 - z) * h + z * n`` has the complement of its gate where that is an activation.
"""

from collections.abc import Iterator

import numpy as np

from rewrites.recurrences.cells.cell import Cell
from rewrites.recurrences.cells.families.candidate import Candidate, Weights
from rewrites.recurrences.cells.gates import NATIVE, complement
from rewrites.recurrences.cells.linear_map import Affine
from rewrites.recurrences.cells.polynomial import Activation, Polynomial

__all__ = ["gru"]


def gru(one: Candidate) -> Cell | None:
    """Recognise it."""
    for z, n in _update_gates(one):
        update = one.weights(z.of)
        reset = _reset_gate(one, n.of)
        if update is None or reset is None:
            continue
        r, new, new_bias, before = reset
        reset_weights = one.weights(r.of)
        if reset_weights is None or r.function != z.function or n.clip != z.clip:
            continue
        weights = Weights.stacked((update, reset_weights, new))
        return Cell(
            "GRU",
            one.hidden,
            None,
            one.inputs,
            weights.w,
            weights.r,
            weights.bias,
            np.concatenate([np.zeros(2 * one.size), new_bias]),
            (z.function, n.function),
            linear_before_reset=before,
        )
    return None


def _update_gates(one: Candidate) -> Iterator[tuple[Activation, Activation]]:
    """Return pairs (z, n) such that the next value is n + z * (h - n)."""
    for gate in one.activations():
        for n, new in one.terms():
            if gate.name not in NATIVE or gate.key == n.key:
                continue
            z = gate.alone
            if new.plus(z.times(one.itself.plus(new.scaled(-1.0)))).key == one.next.key:
                yield gate, n
            other = complement(gate)
            if other is not None and one.itself.plus(z.times(new.plus(one.itself.scaled(-1.0)))).key == one.next.key:
                yield other, n


def _reset_gate(one: Candidate, argument: Polynomial) -> tuple[Activation, Weights, np.ndarray, bool] | None:
    """Return the reset gate, the weights of the new state, its recurrent bias, and whether the matrix comes before the gate."""
    if len(argument.products) == 1:
        return _after_matrix(one, argument)
    return _before_matrix(one, argument) if argument.is_affine else None


def _after_matrix(one: Candidate, argument: Polynomial) -> tuple[Activation, Weights, np.ndarray, bool] | None:
    (product,) = argument.products.values()
    gates = [atom for atom in product.atoms if isinstance(atom, Activation)]
    maps = [atom for atom in product.atoms if isinstance(atom, Affine)]
    if len(gates) != 1 or len(maps) != 1:
        return None
    inside, outside = one.affine_weights(maps[0].scaled(product.coefficient)), one.affine_weights(argument.affine)
    if inside is None or outside is None or inside.w.any() or outside.r.any():
        return None
    return gates[0], Weights(outside.w, inside.r, outside.bias), inside.bias, True


def _before_matrix(one: Candidate, argument: Polynomial) -> tuple[Activation, Weights, np.ndarray, bool] | None:
    derived = [key for key in argument.affine.terms if key in one.reading.derived]
    if len(derived) != 1:
        return None
    product = one.reading.derived[derived[0]]
    rest = {key: matrix for key, matrix in argument.affine.terms.items() if key != derived[0]}
    outside = one.affine_weights(Affine(argument.affine.bias, rest))
    if outside is None or outside.r.any():
        return None
    for atom in (atom for part in product.products.values() for atom in part.atoms):
        if isinstance(atom, Activation) and atom.alone.times(one.itself).key == product.key:
            matrix = argument.affine.terms[derived[0]]
            return atom, Weights(outside.w, matrix.T, outside.bias), np.zeros(one.size), False
    return None
