"""Recognise GRU and LSTM cells by the polynomials of their states.

    GRU     h' = (1 - z) * n + z * h    with  z = f(...), r = f(...) and
            n = g(x @ W + (r * h) @ R + b)    or, with linear_before_reset,    n = g(x @ W + b + r * (h @ R + c))
    LSTM    c' = f * c + i * g,  h' = o * t(c')    with gates  i, f, o = s(x @ W + h @ R + p * c + b)  (o reads c', not c)

A GRU may also be written ``(1 - z) * h + z * n``. Then its gate is ``1 - z``, which must be an activation. The gates of an LSTM may
be coupled: ``c' = (1 - i) * c + i * g``, or ``c' = f * c + (1 - f) * g`` if ``1 - f`` is an activation.
"""

from collections.abc import Hashable, Iterator

import numpy as np

from rewrites.loops import State
from rewrites.ops.rnn.functions import Function
from rewrites.recurrences.cells.cell import Cell, source_of
from rewrites.recurrences.cells.gates import NATIVE, Candidate, GateWeights, atoms_of, one_minus, terms_of
from rewrites.recurrences.cells.linear_map import LinearMap
from rewrites.recurrences.cells.polynomial import Activation, Polynomial

__all__ = ["gru", "lstm"]


def gru(candidate: Candidate) -> Cell | None:
    """Return the GRU with ``candidate`` as its hidden state, or None."""
    for z, n in _update_gates(candidate):
        update = candidate.weights(z.of)
        is_linear = len(n.of.products) == 1
        reset = _reset_after_matrix(candidate, n.of) if is_linear else _reset_before_matrix(candidate, n.of)
        if update is None or reset is None:
            continue
        r, new, new_bias = reset
        reset_weights = candidate.weights(r.of)
        if reset_weights is None or r.function != z.function or n.function.clip != z.function.clip:
            continue
        rb, functions = np.concatenate([np.zeros(2 * candidate.size), new_bias]), (z.function, n.function)
        return candidate.cell("GRU", (update, reset_weights, new), functions, rb=rb, linear_before_reset=is_linear)
    return None


_Reset = tuple[Activation, GateWeights, np.ndarray]
"""The reset gate, the weights of the new state, and the bias that is added before the reset gate is applied."""


def _update_gates(candidate: Candidate) -> Iterator[tuple[Activation, Activation]]:
    """Yield pairs (z, n) such that the next hidden state is n + z * (h - n)."""
    h, terms = candidate.hidden_before, terms_of(candidate.next)
    for gate in candidate.activations():
        for n, new in terms:
            if gate.name not in NATIVE or gate.key == n.key:
                continue
            if (new + gate.alone * (h - new)).key == candidate.next.key:
                yield gate, n
            other = one_minus(gate)
            if other is not None and (h + gate.alone * (new - h)).key == candidate.next.key:
                yield other, n


def _reset_after_matrix(candidate: Candidate, argument: Polynomial) -> _Reset | None:
    """Read ``argument``, the argument of the activation n, as x @ W + b + r * (h @ R + c).

    Return a triple: the reset gate r, the weights W, R and b, and the bias c. Return None if ``argument`` has another form.
    """
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


def _reset_before_matrix(candidate: Candidate, argument: Polynomial) -> _Reset | None:
    """Read ``argument``, the argument of the activation n, as x @ W + (r * h) @ R + b.

    Return a triple: the reset gate r, the weights W, R and b, and a bias of zeros. Return None if ``argument`` has another form.
    """
    derived = [key for key in argument.affine.terms if key in candidate.reading.derived]
    if not argument.is_affine or len(derived) != 1:
        return None
    product = candidate.reading.derived[derived[0]]
    rest = {key: matrix for key, matrix in argument.affine.terms.items() if key != derived[0]}
    outside = candidate.affine_weights(LinearMap(argument.affine.bias, rest))
    if outside is None or outside.r.any():
        return None
    for atom in (atom for part in product.products.values() for atom in part.atoms):
        if isinstance(atom, Activation) and (atom.alone * candidate.hidden_before).key == product.key:
            matrix = argument.affine.terms[derived[0]]
            return atom, GateWeights(outside.w, matrix.T, outside.bias), np.zeros(candidate.size)
    return None


def lstm(candidate: Candidate, cell: State, next_cell: Polynomial) -> Cell | None:
    """Return the LSTM with ``candidate`` as its hidden state and ``cell`` as its cell state, or None."""
    size, key = candidate.size, source_of(cell)
    output = _output_gate(candidate, next_cell) if next_cell.width == size else None
    if output is None:
        return None
    o, outer = output
    kept = Polynomial(LinearMap.source(key, size))
    zeros = Polynomial.constant(np.zeros(size))
    for i, f, g in _cell_gates(next_cell, kept):
        if len({gate.function for gate in (i, f, o) if gate is not None}) != 1 or g.function.clip != o.function.clip:
            continue
        read_i, read_o = _with_peephole(candidate, i.of, key, kept), _with_peephole(candidate, o.of, key, next_cell)
        read_f, read_g = _with_peephole(candidate, zeros if f is None else f.of, key, kept), candidate.weights(g.of)
        if read_i is None or read_o is None or read_f is None or read_g is None:
            continue
        peepholes = np.concatenate([read_i[1], read_o[1], read_f[1]])
        return candidate.cell(
            "LSTM",
            (read_i[0], read_o[0], read_f[0], read_g),
            (o.function, g.function, outer.function),
            cell=cell,
            peepholes=peepholes if peepholes.any() else None,
            input_forget=f is None,
        )
    return None


def _output_gate(candidate: Candidate, next_cell: Polynomial) -> tuple[Activation, Activation] | None:
    """Return (o, t(c')) such that the next hidden state is o * t(c'), or None.

    ``next_cell`` is c'.
    """
    linear = Activation(Function("Affine", 1.0), next_cell)
    terms = [*terms_of(candidate.next), (linear, next_cell)]
    for o in candidate.activations():
        if o.name not in NATIVE:
            continue
        for outer, value in terms:
            is_of_cell = outer.of.key == next_cell.key and outer.function.clip is None
            if is_of_cell and (o.alone * value).key == candidate.next.key:
                return o, outer
    return None


def _cell_gates(next_cell: Polynomial, kept: Polynomial) -> Iterator[tuple[Activation, Activation | None, Activation]]:
    """Yield (i, f, g) for every way to read c' as f * c + i * g. Yield None as f if it is 1 - i.

    ``next_cell`` is c', and ``kept`` is c.
    """
    atoms = {atom.key: atom for atom in atoms_of(next_cell) if isinstance(atom, Activation) and atom.name in NATIVE}
    terms = [(g, value) for g, value in terms_of(next_cell) if value.key != kept.key]
    for f in atoms.values():
        forgotten = f.alone * kept
        for g, new in terms:
            if g.key == f.key:
                continue
            for i in atoms.values():
                if i.key not in (f.key, g.key) and (forgotten + i.alone * new).key == next_cell.key:
                    yield i, f, g
            coupled = one_minus(f)
            if coupled is not None and (forgotten + new - f.alone * new).key == next_cell.key:
                yield coupled, None, g
            if (kept - forgotten + f.alone * new).key == next_cell.key:
                yield f, None, g


def _with_peephole(
    candidate: Candidate, argument: Polynomial, key: Hashable, state: Polynomial
) -> tuple[GateWeights, np.ndarray] | None:
    """Read the argument of a gate as x @ W + h @ R + p * ``state`` + b.

    Return a pair: the weights W, R and b, and the peephole p. Return None if the argument has another form. ``state`` is the old or
    the new cell state. ``key`` is the key of the old cell state as a source. If ``state`` is not in the argument, p is 0.
    """
    if argument.is_affine and key not in argument.affine.terms:
        weights = candidate.weights(argument)
        return None if weights is None else (weights, np.zeros(candidate.size))
    p = _peephole(argument, key, state)
    weights = None if p is None else candidate.weights(argument + state * -p)
    return None if p is None or weights is None else (weights, p)


def _peephole(argument: Polynomial, key: Hashable, state: Polynomial) -> np.ndarray | None:
    """Return the factor p if ``argument`` may contain the term p * ``state``, else None.

    Only one summand of ``state`` is compared with ``argument`` to find p. The caller checks the other summands.
    """
    if state.is_affine:
        matrix = argument.affine.terms.get(key)
        if matrix is None or (matrix != np.diag(np.diag(matrix))).any():
            return None
        return np.diag(matrix).copy()
    for name, product in state.products.items():
        if product.is_plain and name in argument.products:
            return argument.products[name].coefficient
    return None
