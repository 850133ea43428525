"""Searching for sizes that the original takes, where all that were tried are too small for it.

    x [B, N],  Pad <mode = "reflect"> (x, 128, 128),  Conv by a window of 400    ->    N is 400 or more

A waveform is cut into windows, a page shrunk several times. What onnxruntime says of a size that is too small differs from operator
to operator, so it is only asked whether it takes one: larger and larger ones, of one dimension, all but one, or all, until it does;
then each is made as small as it may be.
"""

from collections.abc import Iterator, Mapping, Sequence

from ortscan.verification.cases.planned_cases import Inputs
from ortscan.verification.judging.judge import Judge
from ortscan.verification.sizes.constraints import Sizes

__all__ = ["least_sizes"]

_LARGEST = 1 << 17
_STEPS = (8, 10, 12, 15)
"""Sizes that are tried are these times a power of two: windows have 512 samples, 160 or 480, frames 96 or 80 rows."""
_MOST_ALONE, _TOGETHER = 6, 32
_Row = tuple[int, ...]


def least_sizes(judge: Judge, inputs: Inputs, learned: Sizes | None) -> Mapping[str, int]:
    """Return what some free dimensions must be at least for the original to run, by name; none where nothing was found."""
    axes = inputs.axes(learned)
    free = [place for place, axis in enumerate(axes) if axis.any_size]
    usual = tuple(axis.values[0] for axis in axes)

    def takes(row: _Row) -> bool:
        return not judge.budget.is_spent() and any(judge.takes(case, inputs) for case in inputs.case_of(axes, row))

    found = next((row for row in _larger_rows(usual, free) if takes(row)), None)
    if found is None:
        return {}
    for place in [place for place in free if found[place] != usual[place]]:
        below, size = usual[place], found[place]
        if takes(_with(found, place, below)):
            found = _with(found, place, below)
            continue
        while size - below > 1 and not judge.budget.is_spent():
            middle = (below + size) // 2
            below, size = (below, middle) if takes(_with(found, place, middle)) else (middle, size)
        found = _with(found, place, size)
    return {name: found[place] for place in free if found[place] != usual[place] for name in axes[place].names}


def _larger_rows(usual: _Row, free: Sequence[int]) -> Iterator[_Row]:
    """Yield rows in which one free dimension, all but one, or all, have a size that grows and grows."""
    for size in _sizes() if free else ():
        yield from (_with(usual, place, size) for place in free[:_MOST_ALONE])
        if len(free) > 1 and size >= _TOGETHER and size & (size - 1) == 0:
            for left in (*(free[:_MOST_ALONE] if len(free) > 2 else ()), None):
                yield tuple(size if place in free and place != left else one for place, one in enumerate(usual))


def _sizes() -> Iterator[int]:
    yield from range(2, _STEPS[0] * 2)
    factor = 2
    while factor * _STEPS[0] <= _LARGEST:
        yield from (factor * step for step in _STEPS)
        factor *= 2


def _with(row: _Row, place: int, size: int) -> _Row:
    return (*row[:place], size, *row[place + 1 :])
