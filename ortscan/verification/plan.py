"""Choosing the cases: which sizes and trip counts to try together, and which kind of values.

Every free dimension takes 1 to 5, 7, 8, 16, one size above 16 and one above 128, every trip count such numbers, 0 and -1, each at
least once; the first case has all of them different, one has all of them least. The number of cases is bounded, so this is no full
product: in case ``i`` the k-th dimension takes its ``(i + k)``-th value. Some cases have all dimensions equal above 2, one largest
and the others least, one or all of them 0.

A quick comparison takes few: each free dimension takes 1, 2 and 3 and one size unlike the others, each trip count 0, 1, 2 and 3.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ortscan.verification.budget import Level

__all__ = [
    "Axis",
    "Point",
    "dimension_values",
    "plan_cases",
    "plan_nothing_cases",
    "plan_uniform_cases",
    "plan_value_cases",
    "trip_values",
]

_MOST_SIZE_CASES = 24
_MOST_PAIRS = 3
_MOST_QUICK_CASES = 5
_LARGE = (33, 61, 17, 29)
_LARGER = (131, 137, 139, 149)
_USUAL = (3, 2, 7, 5, 4, 6, 8)
_UNIFORM = (2, 4, 8, 16, 32, 64, 128, 224, 256)
_KINDS = ("large", "mixed", "zeros", "huge", "tiny")
_LAST_KINDS = ("empty rows", "infinite", "NaN")
_OVERRIDES = ("replaced", "negated", "far", "zeros")
_EQUAL = 4


@dataclass(frozen=True)
class Axis:
    """One thing that varies: dimensions that are equal, or one trip count. The first value is the usual one.

    Dimensions in different ``parts`` may differ where one of them is 1 (broadcasting).
    """

    parts: tuple[tuple[str, ...], ...]
    values: tuple[int, ...]
    trips: bool = False

    @property
    def free(self) -> bool:
        """Whether this is a dimension with more than one size to try."""
        return not self.trips and len(self.values) > 1


@dataclass(frozen=True)
class Point:
    """One case to try: sizes of dimensions and trip counts by name, the kind of values, and a number to draw them with.

    ``only``: the one input whose values are of that kind, the others' are normal; all where it is empty. ``override`` also replaces
    the defaults of inputs that have one, and says by what.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    trips: Mapping[str, int] = field(default_factory=dict)
    kind: str = "normal"
    draw: int = 0
    override: str = ""
    only: str = ""


def trip_values(level: Level) -> tuple[int, ...]:
    """The trip counts that are tried, the usual one first."""
    return (3, 1, 2, 0) if level == "quick" else (3, 1, 2, 0, 7, 4, 5, 8, 17, 131, -1)


def dimension_values(position: int, level: Level = "full") -> tuple[int, ...]:
    """The sizes the ``position``-th free dimension is tried with, the usual one first."""
    if level == "quick":
        return tuple(dict.fromkeys((_USUAL[position % len(_USUAL)], 1, 2, 3)))
    large, larger = _LARGE[position % len(_LARGE)], _LARGER[position % len(_LARGER)]
    return tuple(dict.fromkeys((_USUAL[position % len(_USUAL)], 1, 2, 3, 7, large, 4, 5, 8, 16, larger)))


def plan_cases(axes: Sequence[Axis], *, override: bool = False, level: Level = "full") -> list[Point]:
    """The cases for ``axes``; ``override`` adds one that replaces defaults."""
    if level == "quick":
        return _quick_points(axes, override)
    rows = list(dict.fromkeys(_rows(axes)))[:_MOST_SIZE_CASES] if axes else [()]
    usual = rows[0]
    points = [_point(axes, row, draw) for draw, row in enumerate(rows)]
    if len(rows) == 1:
        points += [_point(axes, usual, 100 + draw) for draw in range(3)]
    points += [_point(axes, usual, 200 + draw, kind) for draw, kind in enumerate(_KINDS)]
    points.append(_point(axes, max(rows, key=math.prod), 210, "mixed"))
    points += [_point(axes, _middling(axes), 220 + draw, kind) for draw, kind in enumerate(_LAST_KINDS)]
    points += _broadcast_points(axes, usual)
    if override:
        points += [_point(axes, usual, 400 + draw, override=by) for draw, by in enumerate(_OVERRIDES)]
    return points


def plan_value_cases(axes: Sequence[Axis], kinds: Sequence[tuple[str, str, int]], level: Level = "full") -> list[Point]:
    """So many cases for each of ``kinds`` of values: of the input that is named, or of all."""
    rows = list(dict.fromkeys(_rows(axes, extremes=level == "full"))) if axes else [()]
    middling = _middling(axes) if level == "full" else rows[0]
    points = []
    for place, (kind, only, count) in enumerate(kinds):
        large = max(rows, key=math.prod)
        chosen = (
            (large, large, large, large, middling, rows[0]) if kind == "large integers" else (rows[0], middling, rows[0], large)
        )
        for turn in range(count):
            points.append(replace(_point(axes, chosen[turn], 1000 + 10 * place + turn, kind), only=only))
    return points


def plan_uniform_cases(axes: Sequence[Axis]) -> list[Point]:
    """Cases with all free dimensions equal, for models that run with nothing else."""
    if not any(axis.free for axis in axes):
        return []
    rows = [[size if axis.free else axis.values[0] for axis in axes] for size in _UNIFORM]
    return [_point(axes, row, 500 + draw) for draw, row in enumerate(rows)]


def plan_nothing_cases(axes: Sequence[Axis], level: Level = "full") -> list[Point]:
    """Cases with one dimension of size zero each; in a full comparison also with the others at their least, or all of them zero."""
    empty = [axis for axis in axes if axis.free]
    rows = [[0 if axis is one else axis.values[0] for axis in axes] for one in empty[:4]]
    if level == "full" and len(empty) > 1:
        rows += [[0 if axis is one else _least(axis) for axis in axes] for one in empty[:4]]
        rows.append([0 if axis.free else axis.values[0] for axis in axes])
    return [_point(axes, row, 600 + draw) for draw, row in enumerate(rows)]


def _quick_points(axes: Sequence[Axis], override: bool) -> list[Point]:
    rows = list(dict.fromkeys(_rows(axes, extremes=False)))[:_MOST_QUICK_CASES] if axes else [()]
    points = [_point(axes, row, draw, "mixed" if draw == 2 else "normal") for draw, row in enumerate(rows)]
    if len(rows) == 1:
        points.append(_point(axes, rows[0], 100, "mixed"))
    if override:
        points.append(_point(axes, rows[0], 400, override=_OVERRIDES[0]))
    return points


def _rows(axes: Sequence[Axis], extremes: bool = True) -> Iterator[tuple[int, ...]]:
    yield tuple(axis.values[0] for axis in axes)
    yield tuple(map(_least, axes))
    if extremes:
        yield tuple(2 if 2 in axis.values else axis.values[0] for axis in axes)
        yield tuple(_EQUAL if _EQUAL in axis.values else axis.values[0] for axis in axes)
    for shift in range(max(len(axis.values) for axis in axes)):
        yield tuple(axis.values[(shift + position) % len(axis.values)] for position, axis in enumerate(axes))
    for extreme in axes if extremes else ():
        for size in (max(extreme.values), _least(extreme)):
            yield tuple(size if axis is extreme else axis.values[0] for axis in axes)
    for extreme in axes[:_MOST_PAIRS] if extremes and len(axes) > 1 else ():
        yield tuple(max(axis.values) if axis is extreme else _least(axis) for axis in axes)


def _middling(axes: Sequence[Axis]) -> list[int]:
    return [7 - 2 * (position % 2) if axis.free else axis.values[0] for position, axis in enumerate(axes)]


def _least(axis: Axis) -> int:
    return min((value for value in axis.values if value > 0), default=axis.values[0])


def _broadcast_points(axes: Sequence[Axis], usual: Sequence[int]) -> Iterator[Point]:
    for axis in axes:
        for draw, part in enumerate(axis.parts[:3] if len(axis.parts) > 1 else ()):
            point = _point(axes, usual, 300 + draw)
            yield Point({**point.sizes, **dict.fromkeys(part, 1)}, point.trips, draw=point.draw)


def _point(axes: Sequence[Axis], row: Sequence[int], draw: int, kind: str = "normal", override: str = "") -> Point:
    sizes: dict[str, int] = {}
    trips: dict[str, int] = {}
    for axis, size in zip(axes, row, strict=True):
        (trips if axis.trips else sizes).update(dict.fromkeys((name for part in axis.parts for name in part), size))
    return Point(sizes, trips, kind, draw, override)
