"""Search for sizes that the original accepts, if it rejects the usual sizes.

For example, a model may cut a waveform into windows, or shrink an image several times, so that small inputs fail:

    x [B, N],  Pad <mode = "reflect"> (x, 128, 128),  Conv with a window of 400  ->    N is 400 or more
    x [B, N], h [C, 8],  LSTM in a branch of an If, on frames of x               ->    B and C are equal

The search tries sizes that occur in onnxruntime's error messages. The messages of different operators have different forms, so the
search only reads the numbers in them. Most of these sizes fail, but trying a size is fast:

    Pad reflect: post-pad (64) exceeds maximum allowed (1) for axis 1              ->   64 and 65 for each dimension
    Input initial_h must have shape {1,3,128}. Actual:{1,7,128}, sizes 3 and 7     ->   3 for both, 7 for both

If no number in a message helps, the search tries larger and larger sizes for one dimension, for all but one, or for all. If some
sizes lead to a message of another kind, another node fails, so the search continues from these sizes. When the search has
found sizes that the original accepts, it makes these sizes as small as possible, and records which dimensions must be equal.
"""

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ortscan.running.constraints import SizeFacts
from ortscan.verification.inputs.axis import Axis
from ortscan.verification.inputs.cases import Inputs
from ortscan.verification.judge.judge import Judge

__all__ = ["least_sizes", "rows_by_numbers"]

_STEPS = (8, 10, 12, 15)
"""Sizes to try are these times a power of two. Windows often have 512, 160 or 480 samples, frames have 96 or 80 rows."""
_MOST_ALONE, _TOGETHER = 6, 32
_MOST_TRIES, _DEEPEST = 800, 6
"""The most rows of sizes to try, and the longest chain of messages to follow."""
_PATIENCE = 3
"""The search ends after this many runs that had to be stopped, or that crashed their process."""
_LARGEST = 1 << 17
"""The largest size to try."""
_Row = tuple[int, ...]
_QUOTED = re.compile(r"'[^']*'")
_NUMBER = re.compile(r"\d+")
_MOST_NUMBERS = 12


def least_sizes(
    judge: Judge, inputs: Inputs, learned: SizeFacts | None, kind: str = "normal"
) -> tuple[Mapping[str, int], SizeFacts] | None:
    """Find the smallest sizes of free dimensions that the original accepts, if it rejects the usual sizes.

    Args:
        judge: runs the cases.
        inputs: the inputs of the models.
        learned: the known facts about sizes, or None if nothing is known.
        kind: the kind of values to feed.

    Returns:
        A pair: the sizes by the names of the dimensions, and ``learned`` together with the facts that the search has found. None if
        the original accepts the usual sizes, or if no sizes were found.
    """
    search = _SizeSearch(judge, inputs, inputs.axes(learned), kind)
    usual = tuple(axis.values[0] for axis in search.axes)
    row = search.find_accepted(usual) if search.free_positions else None
    if row is None or row == usual:
        return None
    sizes = SizeFacts() if learned is None else copy.deepcopy(learned)
    row = _smallest(search, row, usual, _equal(search, row, usual, sizes), sizes)
    least = {name: row[at] for at in search.free_positions if row[at] > usual[at] for name in search.axes[at].names}
    return {**inputs.smallest_sizes, **least}, sizes


@dataclass
class _SizeSearch:
    judge: Judge
    inputs: Inputs
    axes: Sequence[Axis]
    kind: str
    _asked: dict[_Row, Sequence[str]] = field(default_factory=dict)
    _complaints: set[str] = field(default_factory=set)
    """The messages without their numbers. If a size is still too small, its message is already known. A new message comes from
    another node, so the search has made progress.
    """

    @property
    def free_positions(self) -> list[int]:
        """The positions of the axes that may have any size, as far as is known."""
        return [position for position, axis in enumerate(self.axes) if axis.can_have_any_size]

    def accepts(self, row: _Row) -> bool:
        """Return True if the original runs with the sizes ``row``.

        If the search has reached one of its limits, nothing is run, and the result is False.
        """
        return self._is_left() and not self._refusals(row)

    def find_accepted(self, row: _Row, depth: int = 0) -> _Row | None:
        """Search for a row of sizes that the original accepts, and return the first one, or None.

        The search starts with ``row``. If a row leads to a new kind of error message, the search continues from this row.
        ``depth`` is the number of these continuations so far.
        """
        if self.accepts(row):
            return row
        messages = dict.fromkeys(self._asked.get(row, ()))
        by_numbers = (other for message in messages for other in rows_by_numbers(message, row, self.free_positions[:_MOST_ALONE]))
        for other in (*by_numbers, *_larger_rows(row, self.free_positions)):
            if other in self._asked or not self._is_left():
                continue
            known = len(self._complaints)
            if not self._refusals(other):
                return other
            if len(self._complaints) > known and depth < _DEEPEST and (deeper := self.find_accepted(other, depth + 1)) is not None:
                return deeper
        return None

    def _is_left(self) -> bool:
        return len(self._asked) < _MOST_TRIES and self.judge.stopped < _PATIENCE and not self.judge.limit.budget.is_spent()

    def _refusals(self, row: _Row) -> Sequence[str]:
        if row not in self._asked:
            cases = self.inputs.case_of(self.axes, row, self.kind)
            self._asked[row] = self.judge.refusals(cases[0], self.inputs) if cases else ["it needs too much memory"]
            self._complaints.update(_NUMBER.sub("", message) for message in self._asked[row])
        return self._asked[row]


def _equal(search: _SizeSearch, row: _Row, usual: _Row, sizes: SizeFacts) -> list[list[int]]:
    """Group the positions of the free axes into classes whose sizes must be equal.

    The original accepts ``row``. Two sizes must be equal if the original rejects a larger size for only one of them, but accepts
    the same larger size for both. Only axes with the same size in ``row`` and different ``usual`` sizes are tested. Equal sizes are
    also recorded in ``sizes``.
    """
    classes = [[position] for position in search.free_positions]
    for first, second in combinations(search.free_positions, 2):
        if row[first] != row[second] or usual[first] == usual[second]:
            continue
        size = row[first] + 1
        if not any(search.accepts(_with(row, [at], size)) for at in (first, second)) and search.accepts(
            _with(row, [first, second], size)
        ):
            sizes.add_equal(search.axes[first].names[0], search.axes[second].names[0])
            joined = [part for part in classes if first in part or second in part]
            classes = [part for part in classes if part not in joined] + [sorted({at for part in joined for at in part})]
    return classes


def _smallest(search: _SizeSearch, row: _Row, usual: _Row, classes: Sequence[Sequence[int]], sizes: SizeFacts) -> _Row:
    """Return ``row`` with the smallest sizes that the original accepts, but not below the ``usual`` sizes.

    ``classes`` are groups of positions whose sizes must be equal. If the original accepts only one size for a class, this size is
    recorded in ``sizes``.
    """
    for positions in classes:
        below, size = min(usual[position] for position in positions), row[positions[0]]
        if size <= below:
            continue
        if search.accepts(_with(row, positions, below)):
            row = _with(row, positions, below)
            continue
        while size - below > 1:
            middle = (below + size) // 2
            below, size = (below, middle) if search.accepts(_with(row, positions, middle)) else (middle, size)
        row = _with(row, positions, size)
        if not search.accepts(_with(row, positions, size + 1)) and not search.accepts(_with(row, positions, 2 * size)):
            sizes.add_equal(search.axes[positions[0]].names[0], size)
    return row


def rows_by_numbers(message: str, row: _Row, free: Sequence[int]) -> Iterator[_Row]:
    """Yield the rows to try next, after the original rejected ``row`` with ``message``.

    A row is a choice of sizes, one for each dimension. The numbers in the message determine the new rows. In the first rows, two
    sizes of ``row`` become equal if both occur in the message. In the other rows, one size is increased to a number in the message,
    or to such a number plus 1. Only the sizes at the positions ``free`` are changed.
    """
    numbers = list(dict.fromkeys(int(number) for number in _NUMBER.findall(_QUOTED.sub("", message))))[:_MOST_NUMBERS]
    for first, second in combinations(free, 2):
        if row[first] != row[second] and row[first] in numbers and row[second] in numbers:
            yield _with(row, [second], row[first])
            yield _with(row, [first], row[second])
    for number in numbers:
        for size in (number, number + 1):
            yield from (_with(row, [position], size) for position in free if row[position] < size <= _LARGEST)


def _larger_rows(usual: _Row, free: Sequence[int]) -> Iterator[_Row]:
    """Yield rows with increasing sizes for one free axis, for all free axes but one, or for all of them."""
    for size in _sizes():
        yield from (_with(usual, [position], size) for position in free[:_MOST_ALONE] if size > usual[position])
        if len(free) > 1 and size >= _TOGETHER and size & (size - 1) == 0:
            for left in (*(free[:_MOST_ALONE] if len(free) > 2 else ()), None):
                yield _with(usual, [position for position in free if position != left], size)


def _sizes() -> Iterator[int]:
    yield from range(2, _STEPS[0] * 2)
    factor = 2
    while factor * _STEPS[0] <= _LARGEST:
        yield from (factor * step for step in _STEPS)
        factor *= 2


def _with(row: _Row, positions: Sequence[int], size: int) -> _Row:
    return tuple(size if position in positions else own for position, own in enumerate(row))
