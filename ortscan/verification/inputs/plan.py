"""Choose which sizes, trip counts and kinds of values are tried together.

An axis is a group of equal free dimensions, or a trip count. A row has one value for each axis. Each row becomes a case.

A full comparison tries the sizes 1 to 8, 16, one of 9 to 15, one above 16 and one above 128 for each free dimension. For each trip
count, it tries similar values, and also 0 and -1. Every value occurs in at least one row: in row ``i``, the k-th axis has its
``(i + k)``-th value. In further rows, one of the first eight axes is larger than all others, or is 1 or 0. There are also rows in
which two of these axes are equal, or are both 1 or 0.

A quick comparison has few rows: each free dimension has the sizes 1, 2, 3 and one more size, and each trip count is 0 to 3.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from ortscan.running.budget import Level
from ortscan.verification.inputs.axis import Axis
from ortscan.verification.inputs.integers import ROW_KINDS
from ortscan.verification.inputs.interface import quoted
from ortscan.verification.inputs.point import Point

__all__ = ["plan_case", "plan_cases", "plan_empty_cases", "plan_uniform_cases", "plan_value_cases", "untried_rows"]

_Row = tuple[int, ...]
_UNIFORM: Mapping[bool, tuple[int, ...]] = {False: (2, 4, 8, 16), True: (32, 64, 128, 224, 256)}
_KINDS = ("large", "mixed", "zeros", "huge", "tiny")
_LAST_KINDS = ("empty rows", "infinite", "NaN", *ROW_KINDS)
_OVERRIDES = ("replaced", "negated", "far", "zeros")
_MOST_ALONE = 8
"""The number of axes that are one after the other the largest, 1 or 0 while other axes have their usual values."""
_MOST_PAIRED = 5
"""The number of axes of which two at a time are 1 or 0 while other axes have their usual values."""
_ALL_EQUAL = (2, 4)
_TWO_EQUAL, _ALONE = (5, 7, 4, 8), 3
_NO_TRIPS = (0, -1)
_MOST_NAMES = 8


def plan_cases(axes: Sequence[Axis], *, override: bool = False, level: Level = "full") -> list[Point]:
    """Return the cases for ``axes`` that are tried first. No dimension has the size 0 in these cases.

    If ``override`` is True, include cases that feed other values instead of the defaults of inputs.
    """
    rows = _size_rows(axes, level)
    usual = rows[0]
    if level == "quick":
        points = [_point(axes, row, draw, "mixed" if draw == 2 else "normal") for draw, row in enumerate(rows)]
        if len(rows) == 1:
            points.append(_point(axes, usual, 100, "mixed"))
        return [*points, _point(axes, usual, 400, override=_OVERRIDES[0])] if override else points
    points = [_point(axes, row, draw) for draw, row in enumerate(rows)]
    if len(rows) == 1:
        points += [_point(axes, usual, 100 + draw) for draw in range(3)]
    points += [_point(axes, usual, 200 + draw, kind) for draw, kind in enumerate(_KINDS)]
    points.append(_point(axes, max(_plain_rows(axes, level), key=math.prod), 210, "mixed"))
    points += [_point(axes, _middle_sizes(axes), 220 + draw, kind) for draw, kind in enumerate(_LAST_KINDS)]
    for axis in axes:
        for draw, part in enumerate(axis.parts[:3] if len(axis.parts) > 1 else ()):
            point = _point(axes, usual, 300 + draw)
            points.append(replace(point, sizes={**point.sizes, **dict.fromkeys(part, 1)}))
    if override:
        points += [_point(axes, usual, 400 + draw, override=by) for draw, by in enumerate(_OVERRIDES)]
    return points


def plan_case(axes: Sequence[Axis], row: Sequence[int]) -> Point:
    """Return the case with the sizes and trip counts in ``row``. Its values are of the usual kind."""
    return _point(axes, row, 0)


def plan_value_cases(axes: Sequence[Axis], kinds: Sequence[tuple[str, str, int]], level: Level = "full") -> list[Point]:
    """Return cases with unusual kinds of values.

    Args:
        axes: the axes.
        kinds: tuples (kind, input, count). In ``count`` cases, ``input`` has values of this kind. If ``input`` is empty, all inputs
            have values of this kind.
        level: how thorough the comparison is.
    """
    rows = _plain_rows(axes, level)
    middling = _middle_sizes(axes) if level == "full" else rows[0]
    large = max(rows, key=math.prod)
    points = []
    for position, (kind, only, count) in enumerate(kinds):
        chosen = {
            "large integers": (large, large, large, large, middling, rows[0]),
            "named": (large, middling),
            "steady": (_with_one_large(axes, 0),),
            "steady across": (_with_one_large(axes, 1),),
        }.get(kind, (rows[0], middling, rows[0], large))
        for turn in range(count):
            points.append(replace(_point(axes, chosen[turn % len(chosen)], 1000 + 10 * position + turn, kind), only_input=only))
    return points


def plan_uniform_cases(axes: Sequence[Axis], *, large: bool) -> list[Point]:
    """Return cases in which all free dimensions have the same size.

    The sizes are 2 to 16, or 32 to 256 if ``large`` is True.
    """
    if not any(axis.has_choice for axis in axes):
        return []
    rows = [[size if axis.has_choice else axis.values[0] for axis in axes] for size in _UNIFORM[large]]
    return [_point(axes, row, 500 + 10 * large + draw) for draw, row in enumerate(rows)]


def plan_empty_cases(axes: Sequence[Axis], level: Level = "full") -> list[Point]:
    """Return cases in which one axis has the size 0, and the others have their usual values.

    In a full comparison, there are also cases in which the other axes have their smallest values, and cases in which several axes
    have the size 0.
    """
    free = [axis for axis in axes if axis.has_choice]
    alone, rest = free[:_MOST_ALONE], free[_MOST_ALONE:]
    rows = [_with(axes, [axis], 0) for axis in alone]
    if rest:
        rows.append(_with(axes, rest, 0))
    if level == "full" and len(free) > 1:
        rows += [
            tuple(0 if axis is empty else axis.smallest_size if axis.has_choice else axis.values[0] for axis in axes)
            for empty in alone
        ]
        rows.append(_with(axes, free, 0))
    if level == "full" and len(free) > 2:
        rows += [_with(axes, [axis for axis in free if axis is not kept], 0) for kept in alone]
        rows += [_with(axes, pair, 0) for pair in combinations(free[:_MOST_PAIRED], 2)]
    return [_point(axes, row, 600 + draw) for draw, row in enumerate(dict.fromkeys(rows))]


def untried_rows(axes: Sequence[Axis], level: Level) -> Iterator[str]:
    """Yield phrases on sizes, trip counts and their combinations that a full comparison does not try.

    Yield nothing for a quick comparison.
    """
    if level != "full":
        return
    varying, free = _varying(axes), [axis for axis in axes if axis.has_choice]
    if listed := _names(axis for axis in axes if axis.can_have_any_size):
        yield f"other sizes of {listed}"
    if listed := _names(axis for axis in varying if axis.is_trip_count):
        yield f"other trip counts of {listed}"
    if listed := _names(varying[_MOST_ALONE:]):
        yield f"{listed} as the only one that is largest or 1, or equal to only one other"
    if listed := _names(free[_MOST_ALONE:]):
        yield f"0 for only one of {listed}"
    if listed := _names(varying[_MOST_PAIRED:]):
        yield f"only two that are 1 or 0, if one of them is {listed}"


def _names(axes: Iterable[Axis]) -> str:
    names = [name for axis in axes for name in axis.names]
    omitted = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return quoted(names[:_MOST_NAMES]) + omitted


def _point(axes: Sequence[Axis], row: Sequence[int], draw: int, kind: str = "normal", override: str = "") -> Point:
    sizes: dict[str, int] = {}
    trips: dict[str, int] = {}
    for axis, size in zip(axes, row, strict=True):
        (trips if axis.is_trip_count else sizes).update(dict.fromkeys(axis.names, size))
    return Point(sizes, trips, kind, draw, override)


def _middle_sizes(axes: Sequence[Axis]) -> list[int]:
    return [7 - 2 * (position % 2) if axis.can_have_any_size else axis.values[0] for position, axis in enumerate(axes)]


def _with_one_large(axes: Sequence[Axis], position: int) -> list[int]:
    """Return the row of usual values, but with the largest size for the free axis at ``position``.

    ``position`` counts only free axes. The callers pass 0 or 1, because the first or second free axis is often the number of steps.
    """
    free = [axis for axis in axes if axis.has_choice]
    large = free[min(position, len(free) - 1)] if free else None
    return [max(axis.values) if axis is large else axis.values[0] for axis in axes]


def _size_rows(axes: Sequence[Axis], level: Level) -> list[_Row]:
    """Return all combinations of sizes, the usual sizes first. No size is 0."""
    rows = _plain_rows(axes, level)
    if level == "full":
        for large in _varying(axes)[:_MOST_ALONE]:
            rows.append(tuple(axis.larger_size if axis is large else axis.smallest_size for axis in axes))
        rows += _pairs(axes)
    return list(dict.fromkeys(rows))


def _plain_rows(axes: Sequence[Axis], level: Level) -> list[_Row]:
    """Return rows such that each value of each axis occurs in at least one row.

    In a full comparison, there are also rows in which all axes are equal, and in which a single axis has its largest or its
    smallest value.
    """
    rows = [_with(axes, [], 0), tuple(axis.smallest_size for axis in axes)]
    if level == "full":
        rows += [tuple(size if size in axis.values else axis.values[0] for axis in axes) for size in _ALL_EQUAL]
    for shift in range(max((len(axis.values) for axis in axes), default=0)):
        rows.append(tuple(axis.values[(shift + position) % len(axis.values)] for position, axis in enumerate(axes)))
    if level == "full":
        varying = _varying(axes)[:_MOST_ALONE]
        rows += [_with(axes, [axis], max(axis.values)) for axis in varying]
        rows += [_with(axes, [axis], axis.smallest_size) for axis in varying]
    return list(dict.fromkeys(rows))


def _varying(axes: Sequence[Axis]) -> list[Axis]:
    return [axis for axis in axes if len(axis.values) > 1]


def _with(axes: Sequence[Axis], changed: Iterable[Axis], size: int) -> _Row:
    """Return the row of usual values, but with ``size`` for the ``changed`` axes."""
    chosen = {id(axis) for axis in changed}
    return tuple(size if id(axis) in chosen else axis.values[0] for axis in axes)


def _pairs(axes: Sequence[Axis]) -> Iterator[_Row]:
    """Yield rows in which several axes have equal values.

    In the first rows, the axes form pairs, and only the two axes of a pair have the same value. In the next rows, only two axes
    have their smallest value. In the last rows, all trip counts are 0, or all trip counts are -1.
    """
    equal = [axis for axis in axes if {_ALONE, *_TWO_EQUAL} <= set(axis.values)][:_MOST_ALONE]
    for couples in _rounds(equal) if len(equal) > 2 else ():
        sizes = {id(axis): _ALONE for axis in equal}
        sizes |= {id(axis): size for couple, size in zip(couples, _TWO_EQUAL, strict=False) for axis in couple}
        yield tuple(sizes.get(id(axis), axis.values[0]) for axis in axes)
    varying = _varying(axes)
    for pair in combinations(varying[:_MOST_PAIRED], 2) if len(varying) > 2 else ():
        yield tuple(axis.smallest_size if axis in pair else axis.values[0] for axis in axes)
    trips = [axis for axis in axes if axis.is_trip_count]
    for count in _NO_TRIPS if len(trips) > 1 else ():
        if all(count in axis.values for axis in trips):
            yield _with(axes, trips, count)


def _rounds(axes: Sequence[Axis]) -> Iterator[list[tuple[Axis, Axis]]]:
    """Yield lists of pairs of axes, like the rounds of a tournament in which each axis meets all others.

    In each list, an axis occurs in at most one pair. In all lists together, each pair of axes occurs exactly once.
    """
    players: list[Axis | None] = [*axes, *([None] if len(axes) % 2 else [])]
    for _ in range(len(players) - 1):
        couples = zip(players[: len(players) // 2], reversed(players), strict=False)
        yield [(left, right) for left, right in couples if left is not None and right is not None]
        players = [players[0], players[-1], *players[1:-1]]
