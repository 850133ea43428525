"""Tries all families on all states of a loop."""

from collections.abc import Iterator

from rewrites.loops import State
from rewrites.recurrences.cell import Cell
from rewrites.recurrences.families.candidate import Candidate
from rewrites.recurrences.families.elman import elman
from rewrites.recurrences.families.gru import gru
from rewrites.recurrences.families.lstm import lstm
from rewrites.recurrences.interpretation import Interpretation
from rewrites.recurrences.polynomial import Polynomial, TooComplex

__all__ = ["find_cells"]


def find_cells(reading: Interpretation) -> Iterator[Cell]:
    """Give every cell that some states of the loop are; one state may be in several."""
    nexts: dict[State, Polynomial] = {}
    for state in reading.loop.states:
        features = reading.features(state.next)
        inner = reading.features(state.inner)
        whole = None if features is None or inner is None or features.shape != inner.shape else features.whole()
        if whole is not None:
            nexts[state] = whole
    inputs = tuple((key, scanned.width) for key, scanned in reading.inputs)
    for state, polynomial in nexts.items():
        one = Candidate(reading, state, polynomial, inputs)
        try:
            found = [elman(one), gru(one), *(lstm(one, other, after) for other, after in nexts.items() if other is not state)]
        except TooComplex:
            continue
        yield from (cell.without_idle_inputs() for cell in found if cell is not None)
