"""Which sizes and trip counts are tried together: each row has one number for every axis.

Every value of every axis comes once, in rows of numbers unlike each other: in row ``i`` the k-th axis takes its ``(i + k)``-th
value. Then one axis at a time is largest, or 1, or 0, for the first eight that vary; then two at a time are equal, 1, or 0.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from ortscan.running.budget import Level
from ortscan.verification.sizes.axis import Axis

__all__ = ["MOST_ALONE", "MOST_PAIRED", "Row", "free_axes", "nothing_rows", "plain_rows", "size_rows", "varying_axes"]

Row = tuple[int, ...]

MOST_ALONE = 8
"""So many axes, the first ones, are in turn largest, 1 or 0 beside the others."""
MOST_PAIRED = 5
"""So many axes, the first ones, are 1 or 0 two at a time beside the others."""

_ALL_EQUAL = (2, 4)
_TWO_EQUAL, _ALONE = (5, 7, 4, 8), 3
_NO_TRIPS = (0, -1)


def varying_axes(axes: Sequence[Axis]) -> list[Axis]:
    """Return the axes with more than one value, trip counts too."""
    return [axis for axis in axes if len(axis.values) > 1]


def free_axes(axes: Sequence[Axis]) -> list[Axis]:
    """Return the axes that may be 0: dimensions with more than one value."""
    return [axis for axis in axes if axis.free]


def size_rows(axes: Sequence[Axis], level: Level) -> list[Row]:
    """Return all rows without a size of 0, the usual one first."""
    rows = plain_rows(axes, level) if level == "quick" else [*plain_rows(axes, level), *_largest_beside_ones(axes), *_pairs(axes)]
    return list(dict.fromkeys(rows))


def plain_rows(axes: Sequence[Axis], level: Level) -> list[Row]:
    """Return the rows in which each axis has its values, and in a full comparison is the largest and the least of all."""
    rows = [_usual(axes), tuple(axis.least for axis in axes)]
    if level == "full":
        rows += [tuple(size if size in axis.values else axis.values[0] for axis in axes) for size in _ALL_EQUAL]
    for shift in range(max((len(axis.values) for axis in axes), default=0)):
        rows.append(tuple(axis.values[(shift + position) % len(axis.values)] for position, axis in enumerate(axes)))
    if level == "full":
        varying = varying_axes(axes)[:MOST_ALONE]
        rows += [_with(axes, [one], max(one.values)) for one in varying]
        rows += [_with(axes, [one], one.least) for one in varying]
    return list(dict.fromkeys(rows))


def nothing_rows(axes: Sequence[Axis], level: Level) -> list[Row]:
    """Return the rows with sizes of 0: in a quick comparison one at a time, beside usual ones."""
    free = free_axes(axes)
    alone, rest = free[:MOST_ALONE], free[MOST_ALONE:]
    rows = [_with(axes, [one], 0) for one in alone]
    if rest:
        rows.append(_with(axes, rest, 0))
    if level == "full" and len(free) > 1:
        rows += [tuple(0 if axis is one else axis.least if axis.free else axis.values[0] for axis in axes) for one in alone]
        rows.append(_with(axes, free, 0))
    if level == "full" and len(free) > 2:
        rows += [_with(axes, [axis for axis in free if axis is not one], 0) for one in alone]
        rows += [_with(axes, two, 0) for two in combinations(free[:MOST_PAIRED], 2)]
    return list(dict.fromkeys(rows))


def _usual(axes: Sequence[Axis]) -> Row:
    return tuple(axis.values[0] for axis in axes)


def _with(axes: Sequence[Axis], some: Iterable[Axis], size: int) -> Row:
    """Return the usual row but for ``some``, which are of ``size``."""
    chosen = {id(axis) for axis in some}
    return tuple(size if id(axis) in chosen else axis.values[0] for axis in axes)


def _largest_beside_ones(axes: Sequence[Axis]) -> Iterator[Row]:
    for one in varying_axes(axes)[:MOST_ALONE]:
        yield tuple(axis.beyond if axis is one else axis.least for axis in axes)


def _pairs(axes: Sequence[Axis]) -> Iterator[Row]:
    """Yield rows where two axes are alike and the others are not: equal, for the first ones also 1; all trip counts 0, or below."""
    equal = [axis for axis in axes if {_ALONE, *_TWO_EQUAL} <= set(axis.values)][:MOST_ALONE]
    for couples in _rounds(equal) if len(equal) > 2 else ():
        sizes = {id(axis): _ALONE for axis in equal}
        sizes |= {id(axis): size for couple, size in zip(couples, _TWO_EQUAL, strict=False) for axis in couple}
        yield tuple(sizes.get(id(axis), axis.values[0]) for axis in axes)
    varying = varying_axes(axes)
    for two in combinations(varying[:MOST_PAIRED], 2) if len(varying) > 2 else ():
        yield tuple(axis.least if axis in two else axis.values[0] for axis in axes)
    trips = [axis for axis in axes if axis.trips]
    for count in _NO_TRIPS if len(trips) > 1 else ():
        if all(count in axis.values for axis in trips):
            yield _with(axes, trips, count)


def _rounds(axes: Sequence[Axis]) -> Iterator[list[tuple[Axis, Axis]]]:
    """Yield couples as in a tournament: in each round an axis is in one couple at most, and each two meet once."""
    players: list[Axis | None] = [*axes, *([None] if len(axes) % 2 else [])]
    for _ in range(len(players) - 1):
        couples = zip(players[: len(players) // 2], reversed(players), strict=False)
        yield [(one, other) for one, other in couples if one is not None and other is not None]
        players = [players[0], players[-1], *players[1:-1]]
