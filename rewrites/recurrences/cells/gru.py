"""GRU:  h' = (1 - z) * n + z * h  with  z = f(...), r = f(...) and

    n = g(x @ W + (r * h) @ R + b)            or, with linear_before_reset,
    n = g(x @ W + b + r * (h @ R + c))

A cell that keeps ``(1 - z) * h + z * n`` has the complement of its gate if that is an activation.
"""

from collections.abc import Iterator

import numpy as np

from rewrites.recurrences.cells.cell import Cell
from rewrites.recurrences.cells.gates import NATIVE, Candidate, GateWeights, one_minus, terms_of
from rewrites.recurrences.cells.linear_map import LinearMap
from rewrites.recurrences.cells.polynomial import Activation, Polynomial

__all__ = ["gru"]

_Reset = tuple[Activation, GateWeights, np.ndarray]
"""The reset gate, the weights of the new state, and the bias that is added before the reset gate is applied."""


def gru(candidate: Candidate) -> Cell | None:
    """Return the GRU whose hidden state ``candidate`` is, or None."""
    for z, n in _update_gates(candidate):
        update = candidate.weights(z.of)
        is_linear = len(n.of.products) == 1
        reset = _after_matrix(candidate, n.of) if is_linear else _before_matrix(candidate, n.of)
        if update is None or reset is None:
            continue
        r, new, new_bias = reset
        reset_weights = candidate.weights(r.of)
        if reset_weights is None or r.function != z.function or n.function.clip != z.function.clip:
            continue
        weights = GateWeights.stacked((update, reset_weights, new))
        return Cell(
            op_type="GRU",
            hidden=candidate.hidden,
            sources=candidate.inputs,
            w=weights.w,
            r=weights.r,
            wb=weights.bias,
            rb=np.concatenate([np.zeros(2 * candidate.size), new_bias]),
            functions=(z.function, n.function),
            linear_before_reset=is_linear,
        )
    return None


def _update_gates(candidate: Candidate) -> Iterator[tuple[Activation, Activation]]:
    """Return pairs (z, n) such that the next value is n + z * (h - n)."""
    h, terms = candidate.itself, terms_of(candidate.next)
    for gate in candidate.activations():
        for n, new in terms:
            if gate.name not in NATIVE or gate.key == n.key:
                continue
            if (new + gate.alone * (h - new)).key == candidate.next.key:
                yield gate, n
            other = one_minus(gate)
            if other is not None and (h + gate.alone * (new - h)).key == candidate.next.key:
                yield other, n


def _after_matrix(candidate: Candidate, argument: Polynomial) -> _Reset | None:
    """Read the argument of the new state if the reset gate is applied after the recurrent matrix."""
    (product,) = argument.products.values()
    gates = [atom for atom in product.atoms if isinstance(atom, Activation)]
    maps = [atom for atom in product.atoms if isinstance(atom, LinearMap)]
    if len(gates) != 1 or len(maps) != 1:
        return None
    inside = candidate.affine_weights(maps[0].scaled(product.coefficient))
    outside = candidate.affine_weights(argument.affine)
    if inside is None or outside is None or inside.w.any() or outside.r.any():
        return None
    return gates[0], GateWeights(outside.w, inside.r, outside.bias), inside.bias


def _before_matrix(candidate: Candidate, argument: Polynomial) -> _Reset | None:
    """Read the argument of the new state if the reset gate is applied before the recurrent matrix."""
    derived = [key for key in argument.affine.terms if key in candidate.reading.derived]
    if not argument.is_affine or len(derived) != 1:
        return None
    product = candidate.reading.derived[derived[0]]
    rest = {key: matrix for key, matrix in argument.affine.terms.items() if key != derived[0]}
    outside = candidate.affine_weights(LinearMap(argument.affine.bias, rest))
    if outside is None or outside.r.any():
        return None
    for atom in (atom for part in product.products.values() for atom in part.atoms):
        if isinstance(atom, Activation) and (atom.alone * candidate.itself).key == product.key:
            matrix = argument.affine.terms[derived[0]]
            return atom, GateWeights(outside.w, matrix.T, outside.bias), np.zeros(candidate.size)
    return None
