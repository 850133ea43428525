"""LSTM:  c' = f * c + i * g,  h' = o * t(c')  with gates  i, f, o = s(x @ W + h @ R + p * c + b), of which o sees c'.

With coupled gates, ``c' = (1 - i) * c + i * g``, or ``c' = f * c + (1 - f) * g`` where the complement of f is an activation.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from rewrites.loops import State
from rewrites.recurrences.cells.cell import Cell, source_of
from rewrites.recurrences.cells.families.candidate import Candidate, Weights, atoms_of, terms_of
from rewrites.recurrences.cells.gates import NATIVE, complement
from rewrites.recurrences.cells.linear_map import Affine
from rewrites.recurrences.cells.polynomial import Activation, Polynomial

__all__ = ["lstm"]


@dataclass(frozen=True)
class _Gates:
    i: Activation
    f: Activation | None
    g: Activation


def lstm(one: Candidate, cell: State, next_cell: Polynomial) -> Cell | None:
    """Recognise it, with ``cell`` as the other state."""
    output = _output_gate(one, next_cell) if next_cell.width == one.size else None
    if output is None:
        return None
    o, outer = output
    key = source_of(cell)
    kept = Polynomial(Affine.source(key, one.size))
    for gates in _cell_gates(next_cell, kept):
        functions = {gate.function for gate in (gates.i, gates.f, o) if gate is not None}
        if len(functions) != 1 or gates.g.clip != o.clip:
            continue
        read_i, read_o = _peeping(one, gates.i.of, key, kept), _peeping(one, o.of, key, next_cell)
        read_f = _peeping(one, gates.f.of, key, kept) if gates.f is not None else _nothing(one)
        read_g = one.weights(gates.g.of)
        if read_i is None or read_o is None or read_f is None or read_g is None:
            continue
        weights = Weights.stacked((read_i[0], read_o[0], read_f[0], read_g))
        peepholes = np.concatenate([read_i[1], read_o[1], read_f[1]])
        return Cell(
            "LSTM",
            one.hidden,
            cell,
            one.inputs,
            weights.w,
            weights.r,
            weights.bias,
            np.zeros(4 * one.size),
            (o.function, gates.g.function, outer.function),
            peepholes=peepholes if peepholes.any() else None,
            input_forget=gates.f is None,
        )
    return None


def _nothing(one: Candidate) -> tuple[Weights, np.ndarray]:
    zeros = np.zeros((one.size, sum(width for _, width in one.inputs)))
    return Weights(zeros, np.zeros((one.size, one.size)), np.zeros(one.size)), np.zeros(one.size)


def _output_gate(one: Candidate, next_cell: Polynomial) -> tuple[Activation, Activation] | None:
    """Return (o, t) where the next hidden state is o * t(c')."""
    linear = Activation("Affine", 1.0, 0.0, next_cell)
    for o in one.activations():
        if o.name not in NATIVE:
            continue
        for outer, value in (*one.terms(), (linear, next_cell)):
            if outer.of.key == next_cell.key and outer.clip is None and o.alone.times(value).key == one.next.key:
                return o, outer
    return None


def _cell_gates(next_cell: Polynomial, kept: Polynomial) -> Iterator[_Gates]:
    """Return every reading of c' as gates."""
    atoms = {atom.key: atom for atom in atoms_of(next_cell) if isinstance(atom, Activation) and atom.name in NATIVE}
    terms = [(g, value) for g, value in terms_of(next_cell) if value.key != kept.key]
    for f in atoms.values():
        forgotten = f.alone.times(kept)
        for g, new in terms:
            if g.key == f.key:
                continue
            for i in atoms.values():
                if i.key not in (f.key, g.key) and forgotten.plus(i.alone.times(new)).key == next_cell.key:
                    yield _Gates(i, f, g)
            coupled = complement(f)
            if coupled is not None and forgotten.plus(new).plus(f.alone.times(new).scaled(-1.0)).key == next_cell.key:
                yield _Gates(coupled, None, g)
            if kept.plus(forgotten.scaled(-1.0)).plus(f.alone.times(new)).key == next_cell.key:
                yield _Gates(f, None, g)


def _peeping(one: Candidate, argument: Polynomial, key: Hashable, seen: Polynomial) -> tuple[Weights, np.ndarray] | None:
    """Read a gate's argument that may hold p * ``seen``: the cell state as it was, or as it becomes."""
    if argument.is_affine and key not in argument.affine.terms:
        weights = one.weights(argument)
        return None if weights is None else (weights, np.zeros(one.size))
    p = _multiple(argument, key, seen)
    if p is None:
        return None
    weights = one.weights(argument.plus(seen.scaled(-p)))
    return None if weights is None else (weights, p)


def _multiple(argument: Polynomial, key: Hashable, seen: Polynomial) -> np.ndarray | None:
    """Return p such that ``argument`` holds p * ``seen``, as far as one summand tells."""
    if seen.is_affine:
        matrix = argument.affine.terms.get(key)
        if matrix is None or (matrix != np.diag(np.diag(matrix))).any():
            return None
        return np.diag(matrix).copy()
    for name, product in seen.products.items():
        if product.is_plain and name in argument.products:
            return argument.products[name].coefficient
    return None
