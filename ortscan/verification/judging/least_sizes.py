"""Searching for sizes that the original takes, where none that were tried are.

    x [B, N],  Pad <mode = "reflect"> (x, 128, 128),  Conv by a window of 400    ->    N is 400 or more
    x [B, N], h [C, 8],  LSTM in a branch of an If, on frames of x               ->    B and C are one

A waveform is cut into windows, a page shrunk several times. What onnxruntime says of a size differs from operator to operator, so
only the numbers in it are read; then larger and larger sizes are tried, of one dimension, all but one, or all. Where it complains
of something new, the search goes on from there. What is found is made as small as it may be, and what must be equal is told.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ortscan.verification.cases.planned_cases import Inputs
from ortscan.verification.judging.judge import Judge
from ortscan.verification.sizes.axis import Axis
from ortscan.verification.sizes.constraints import Sizes
from ortscan.verification.sizes.said import LARGEST, complaint, rows_by_numbers, with_size

__all__ = ["Found", "least_sizes"]

_STEPS = (8, 10, 12, 15)
"""Sizes that are tried are these times a power of two: windows have 512 samples, 160 or 480, frames 96 or 80 rows."""
_MOST_ALONE, _TOGETHER = 6, 32
_MOST_TRIES, _DEEPEST = 800, 6
"""So many rows of sizes are tried, and so many complaints followed one from another."""
_PATIENCE = 3
"""After so many runs that had to be stopped, or ended their process, nothing is searched for."""
_Row = tuple[int, ...]


@dataclass(frozen=True)
class Found:
    """What free dimensions must be at least for the original to run, by name; and what is known of sizes then."""

    least: Mapping[str, int]
    learned: Sizes


def least_sizes(judge: Judge, inputs: Inputs, learned: Sizes | None, kind: str = "normal") -> Found | None:
    """Return what lets the original run on values of a ``kind``; None where nothing was found, or the usual sizes do."""
    search = _Search(judge, inputs, inputs.axes(learned), kind)
    usual = tuple(axis.values[0] for axis in search.axes)
    found = search.first(usual) if search.free else None
    if found is None or found == usual:
        return None
    told = Sizes() if learned is None else copy.deepcopy(learned)
    found = _smallest(search, found, usual, _equal(search, found, usual, told), told)
    least = {name: found[place] for place in search.free if found[place] > usual[place] for name in search.axes[place].names}
    return Found({**inputs.least, **least}, told)


@dataclass
class _Search:
    judge: Judge
    inputs: Inputs
    axes: Sequence[Axis]
    kind: str
    _asked: dict[_Row, Sequence[str]] = field(default_factory=dict)
    _complaints: set[str] = field(default_factory=set)

    @property
    def free(self) -> list[int]:
        """The places of the dimensions that nothing says the size of."""
        return [place for place, axis in enumerate(self.axes) if axis.any_size]

    def takes(self, row: _Row) -> bool:
        """Whether the original runs; not where no more is to be tried."""
        return self._is_left() and not self._refusals(row)

    def first(self, row: _Row, depth: int = 0) -> _Row | None:
        """Return the first row that is taken, of ``row`` and those that what is said against it leads to."""
        if self.takes(row):
            return row
        said = self._asked.get(row, ())
        by_numbers = (other for one in dict.fromkeys(said) for other in rows_by_numbers(one, row, self.free[:_MOST_ALONE]))
        for other in (*by_numbers, *_larger_rows(row, self.free)):
            if other in self._asked or not self._is_left():
                continue
            known = len(self._complaints)
            if not self._refusals(other):
                return other
            if len(self._complaints) > known and depth < _DEEPEST and (found := self.first(other, depth + 1)) is not None:
                return found
        return None

    def _is_left(self) -> bool:
        return len(self._asked) < _MOST_TRIES and self.judge.stopped < _PATIENCE and not self.judge.budget.is_spent()

    def _refusals(self, row: _Row) -> Sequence[str]:
        if row not in self._asked:
            cases = self.inputs.case_of(self.axes, row, self.kind)
            self._asked[row] = self.judge.refusals(cases[0], self.inputs) if cases else ["it takes too much"]
            self._complaints.update(complaint(said) for said in self._asked[row])
        return self._asked[row]


def _equal(search: _Search, found: _Row, usual: _Row, told: Sizes) -> list[list[int]]:
    """Return the places of dimensions in classes that are one: refused with one of them larger, taken with both."""
    classes = [[place] for place in search.free]
    for one, other in combinations(search.free, 2):
        if found[one] != found[other] or usual[one] == usual[other]:
            continue
        more = found[one] + 1
        apart = (with_size(found, one, more), with_size(found, other, more))
        if not any(search.takes(row) for row in apart) and search.takes(with_size(apart[0], other, more)):
            told.same(search.axes[one].names[0], search.axes[other].names[0])
            joined = [part for part in classes if one in part or other in part]
            classes = [part for part in classes if part not in joined] + [sorted({place for part in joined for place in part})]
    return classes


def _smallest(search: _Search, found: _Row, usual: _Row, classes: Sequence[Sequence[int]], told: Sizes) -> _Row:
    """Return ``found`` with each class as small as it may be; that it may be nothing else is told."""
    for places in classes:
        below, size = min(usual[place] for place in places), found[places[0]]
        if size <= below:
            continue
        if search.takes(_with_all(found, places, below)):
            found = _with_all(found, places, below)
            continue
        while size - below > 1:
            middle = (below + size) // 2
            below, size = (below, middle) if search.takes(_with_all(found, places, middle)) else (middle, size)
        found = _with_all(found, places, size)
        if not search.takes(_with_all(found, places, size + 1)) and not search.takes(_with_all(found, places, 2 * size)):
            told.same(search.axes[places[0]].names[0], size)
    return found


def _with_all(row: _Row, places: Sequence[int], size: int) -> _Row:
    return tuple(size if place in places else one for place, one in enumerate(row))


def _larger_rows(usual: _Row, free: Sequence[int]) -> Iterator[_Row]:
    """Yield rows in which one free dimension, all but one, or all, have a size that grows and grows."""
    for size in _sizes():
        yield from (with_size(usual, place, size) for place in free[:_MOST_ALONE] if size > usual[place])
        if len(free) > 1 and size >= _TOGETHER and size & (size - 1) == 0:
            for left in (*(free[:_MOST_ALONE] if len(free) > 2 else ()), None):
                yield tuple(size if place in free and place != left else one for place, one in enumerate(usual))


def _sizes() -> Iterator[int]:
    yield from range(2, _STEPS[0] * 2)
    factor = 2
    while factor * _STEPS[0] <= LARGEST:
        yield from (factor * step for step in _STEPS)
        factor *= 2
