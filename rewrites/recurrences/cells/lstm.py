"""LSTM:  c' = f * c + i * g,  h' = o * t(c')  with gates  i, f, o = s(x @ W + h @ R + p * c + b), of which o reads c'.

With coupled gates, ``c' = (1 - i) * c + i * g``, or ``c' = f * c + (1 - f) * g`` if the complement of f is an activation.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from rewrites.loops import State
from rewrites.ops.rnn.functions import Function
from rewrites.recurrences.cells.cell import Cell, source_of
from rewrites.recurrences.cells.gates import NATIVE, Candidate, GateWeights, atoms_of, one_minus, terms_of
from rewrites.recurrences.cells.linear_map import LinearMap
from rewrites.recurrences.cells.polynomial import Activation, Polynomial

__all__ = ["lstm"]


@dataclass(frozen=True)
class _Gates:
    i: Activation
    f: Activation | None
    g: Activation


def lstm(candidate: Candidate, cell: State, next_cell: Polynomial) -> Cell | None:
    """Return the LSTM whose hidden state ``candidate`` is and whose cell state is ``cell``, or None."""
    size, key = candidate.size, source_of(cell)
    output = _output_gate(candidate, next_cell) if next_cell.width == size else None
    if output is None:
        return None
    o, outer = output
    kept = Polynomial(LinearMap.source(key, size))
    zeros = Polynomial.constant(np.zeros(size))
    for gates in _cell_gates(next_cell, kept):
        functions = {gate.function for gate in (gates.i, gates.f, o) if gate is not None}
        if len(functions) != 1 or gates.g.function.clip != o.function.clip:
            continue
        read_i, read_o = _peeping(candidate, gates.i.of, key, kept), _peeping(candidate, o.of, key, next_cell)
        read_f = _peeping(candidate, zeros if gates.f is None else gates.f.of, key, kept)
        read_g = candidate.weights(gates.g.of)
        if read_i is None or read_o is None or read_f is None or read_g is None:
            continue
        weights = GateWeights.stacked((read_i[0], read_o[0], read_f[0], read_g))
        peepholes = np.concatenate([read_i[1], read_o[1], read_f[1]])
        return Cell(
            op_type="LSTM",
            hidden=candidate.hidden,
            cell=cell,
            sources=candidate.inputs,
            w=weights.w,
            r=weights.r,
            wb=weights.bias,
            rb=np.zeros(4 * size),
            functions=(o.function, gates.g.function, outer.function),
            peepholes=peepholes if peepholes.any() else None,
            input_forget=gates.f is None,
        )
    return None


def _output_gate(candidate: Candidate, next_cell: Polynomial) -> tuple[Activation, Activation] | None:
    """Return (o, t) such that the next hidden state is o * t(c')."""
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


def _cell_gates(next_cell: Polynomial, kept: Polynomial) -> Iterator[_Gates]:
    """Return every reading of c' as gates."""
    atoms = {atom.key: atom for atom in atoms_of(next_cell) if isinstance(atom, Activation) and atom.name in NATIVE}
    terms = [(g, value) for g, value in terms_of(next_cell) if value.key != kept.key]
    for f in atoms.values():
        forgotten = f.alone * kept
        for g, new in terms:
            if g.key == f.key:
                continue
            for i in atoms.values():
                if i.key not in (f.key, g.key) and (forgotten + i.alone * new).key == next_cell.key:
                    yield _Gates(i, f, g)
            coupled = one_minus(f)
            if coupled is not None and (forgotten + new - f.alone * new).key == next_cell.key:
                yield _Gates(coupled, None, g)
            if (kept - forgotten + f.alone * new).key == next_cell.key:
                yield _Gates(f, None, g)


def _peeping(candidate: Candidate, argument: Polynomial, key: Hashable, state: Polynomial) -> tuple[GateWeights, np.ndarray] | None:
    """Read a gate's argument that may hold p * ``state``, which is the cell state before or after the step."""
    if argument.is_affine and key not in argument.affine.terms:
        weights = candidate.weights(argument)
        return None if weights is None else (weights, np.zeros(candidate.size))
    p = _peephole(argument, key, state)
    weights = None if p is None else candidate.weights(argument + state * -p)
    return None if p is None or weights is None else (weights, p)


def _peephole(argument: Polynomial, key: Hashable, state: Polynomial) -> np.ndarray | None:
    """Return the p for which ``argument`` may hold p * ``state``, as read off one summand."""
    if state.is_affine:
        matrix = argument.affine.terms.get(key)
        if matrix is None or (matrix != np.diag(np.diag(matrix))).any():
            return None
        return np.diag(matrix).copy()
    for name, product in state.products.items():
        if product.is_plain and name in argument.products:
            return argument.products[name].coefficient
    return None
