"""Tries all families on all states of a loop."""

from collections.abc import Iterator

from rewrites.analysis.cut.components import find_components
from rewrites.loops import State
from rewrites.recurrences.cells.cell import Cell
from rewrites.recurrences.cells.families.candidate import Candidate
from rewrites.recurrences.cells.families.elman import elman
from rewrites.recurrences.cells.families.gru import gru
from rewrites.recurrences.cells.families.lstm import lstm
from rewrites.recurrences.cells.interpretation import Interpretation
from rewrites.recurrences.cells.polynomial import Polynomial, TooComplex

__all__ = ["find_cells"]


def find_cells(reading: Interpretation) -> Iterator[Cell]:
    """Return every cell that some states of the loop are; one state may be in several."""
    nexts: dict[State, Polynomial] = {}
    for state in reading.loop.states:
        features = reading.features(state.next)
        inner = reading.features(state.inner)
        whole = None if features is None or inner is None or features.shape != inner.shape else features.whole()
        if whole is not None:
            nexts[state] = whole
    partners = _Partners(reading)
    inputs = tuple((key, scanned.width) for key, scanned in reading.inputs)
    for state, polynomial in nexts.items():
        one = Candidate(reading, state, polynomial, inputs)
        try:
            found = [elman(one), gru(one), *(lstm(one, other, nexts[other]) for other in partners.of(state) if other in nexts)]
        except TooComplex:
            continue
        yield from (cell.without_idle_inputs() for cell in found if cell is not None)


class _Partners:
    """Which states can be the cell state beside a hidden state: it is computed from them, and they from it or from no third state.

    A loop may hold many layers, and not every pair of its states need be looked at.
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
