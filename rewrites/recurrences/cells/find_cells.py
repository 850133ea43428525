"""Every cell that a loop may be: read as it is, with rows that keep their states, with weights known only when the model runs.

h' = f(x @ W + h @ R + b)    is an Elman RNN; GRUs and LSTMs have files of their own
"""

from collections.abc import Iterator

import numpy as np

from rewrites.analysis.cut.components import find_components
from rewrites.loops import ScanView, State
from rewrites.recurrences.cells.cell import Cell, Numbers
from rewrites.recurrences.cells.gated_cells import gru, lstm
from rewrites.recurrences.cells.gates import Candidate, gate
from rewrites.recurrences.cells.interpretation import Interpretation
from rewrites.recurrences.cells.masks import CellMatch, masks_of
from rewrites.recurrences.cells.polynomial import Polynomial, TooComplex
from rewrites.recurrences.cells.run_time_weights import cells_of_run_time_weights, run_time_weights

__all__ = ["find_cells"]


def find_cells(loop: ScanView, opset: int) -> Iterator[CellMatch]:
    """Return the cells the body may be, the plainest first."""

    def plain(numbers: Numbers) -> list[CellMatch]:
        reading = Interpretation.of_body(loop, opset, numbers=numbers)
        return [CellMatch(cell, reading) for cell in _cells(reading)]

    def masked(numbers: Numbers) -> list[CellMatch]:
        matches = (CellMatch(cell, mask.active, mask) for mask in masks_of(loop, opset, numbers) for cell in _cells(mask.active))
        return [match for match in matches if match.keeps_states()]

    yield from plain({})
    yield from masked({})
    if weights := run_time_weights(loop, opset):
        yield from cells_of_run_time_weights(weights, plain)
        yield from cells_of_run_time_weights(weights, masked)


def _cells(reading: Interpretation) -> Iterator[Cell]:
    """Return every cell that some states of the loop are; one state may be in several."""
    nexts: dict[State, Polynomial] = {}
    for state in reading.loop.states:
        features, inner = reading.features(state.next), reading.features(state.inner)
        whole = None if features is None or inner is None or features.shape != inner.shape else features.whole()
        if whole is not None:
            nexts[state] = whole
    partners = _Partners(reading)
    inputs = tuple((key, scanned.width) for key, scanned in reading.inputs)
    for state, polynomial in nexts.items():
        candidate = Candidate(reading, state, polynomial, inputs)
        others = (other for other in partners.of(state) if other in nexts)
        try:
            cells = [_elman(candidate), gru(candidate), *(lstm(candidate, other, nexts[other]) for other in others)]
        except TooComplex:
            continue
        yield from (cell.without_idle_inputs() for cell in cells if cell is not None)


def _elman(candidate: Candidate) -> Cell | None:
    """Return the Elman RNN that computes the state, or None.

    A linear f needs an R without zeros: separate units would become one whole matrix, in which an infinite unit makes all
    others NaN.
    """
    activation = gate(candidate.next)
    weights = None if activation is None else candidate.weights(activation.of)
    if activation is None or weights is None or not weights.r.any():
        return None
    if activation.name == "Affine" and candidate.size > 1 and (weights.r == 0).any():
        return None
    return Cell(
        op_type="RNN",
        hidden=candidate.hidden,
        sources=candidate.inputs,
        w=weights.w,
        r=weights.r,
        wb=weights.bias,
        rb=np.zeros(candidate.size),
        functions=(activation.function,),
    )


class _Partners:
    """Which states can be the cell state beside a hidden state: it is computed from them, and they from it or from no third state.

    A loop may hold many layers, and most pairs of its states need not be tried.
    """

    def __init__(self, reading: Interpretation) -> None:
        self._components = find_components(reading.loop)
        self._group = {state: group for group in self._components.members for state in group}
        self._alone = [group[0] for group in self._components.members if len(group) == 1]

    def of(self, state: State) -> list[State]:
        """Return the partners of ``state``."""
        behind = self._components.behind
        sources = behind.get(state.next, 0)
        alone = [other for other in self._alone if behind[other.inner] & sources]
        return [other for other in dict.fromkeys([*self._group[state], *alone]) if other is not state]
