"""Choosing the cases: which sizes and trip counts to try together, and which kind of values.

Every free dimension takes 1 to 8, one size of 9 to 15, 16, one above 16 and one above 128, every trip count such numbers, 0 and -1,
each at least once; the first case has all of them different, one has all of them least. The number of cases is bounded, so this is
no full product: see `size_rows`. A quick comparison takes few: each free dimension takes 1, 2 and 3 and one size more, each trip
count 0, 1, 2 and 3. Where the result does something else from a size on, sizes beyond that are taken too.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ortscan.running.budget import Level
from ortscan.verification.sizes.axis import Axis
from ortscan.verification.sizes.rows import nothing_rows, plain_rows, size_rows
from ortscan.verification.values.point import Point
from ortscan.verification.values.row_lengths import ROW_KINDS

__all__ = ["plan_case", "plan_cases", "plan_nothing_cases", "plan_uniform_cases", "plan_value_cases"]

_UNIFORM: Mapping[bool, tuple[int, ...]] = {False: (2, 4, 8, 16), True: (32, 64, 128, 224, 256)}
_KINDS = ("large", "mixed", "zeros", "huge", "tiny")
_LAST_KINDS = ("empty rows", "infinite", "NaN", *ROW_KINDS)
_OVERRIDES = ("replaced", "negated", "far", "zeros")


def plan_cases(axes: Sequence[Axis], *, override: bool = False, level: Level = "full") -> list[Point]:
    """The cases for ``axes``; ``override`` adds one that replaces defaults."""
    if level == "quick":
        return _quick_points(axes, override)
    rows = size_rows(axes, level)
    usual = rows[0]
    points = [_point(axes, row, draw) for draw, row in enumerate(rows)]
    if len(rows) == 1:
        points += [_point(axes, usual, 100 + draw) for draw in range(3)]
    points += [_point(axes, usual, 200 + draw, kind) for draw, kind in enumerate(_KINDS)]
    points.append(_point(axes, max(plain_rows(axes, level), key=math.prod), 210, "mixed"))
    points += [_point(axes, _middling(axes), 220 + draw, kind) for draw, kind in enumerate(_LAST_KINDS)]
    points += _broadcast_points(axes, usual)
    if override:
        points += [_point(axes, usual, 400 + draw, override=by) for draw, by in enumerate(_OVERRIDES)]
    return points


def plan_case(axes: Sequence[Axis], row: Sequence[int]) -> Point:
    """The case of these sizes, with usual values."""
    return _point(axes, row, 0)


def plan_value_cases(axes: Sequence[Axis], kinds: Sequence[tuple[str, str, int]], level: Level = "full") -> list[Point]:
    """So many cases for each of ``kinds`` of values: of the input that is named, or of all."""
    rows = plain_rows(axes, level)
    middling = _middling(axes) if level == "full" else rows[0]
    points = []
    for place, (kind, only, count) in enumerate(kinds):
        large = max(rows, key=math.prod)
        chosen = {
            "large integers": (large, large, large, large, middling, rows[0]),
            "named": (large, middling),
            "steady": (_one_large(axes, 0),),
            "steady across": (_one_large(axes, 1),),
        }.get(kind, (rows[0], middling, rows[0], large))
        for turn in range(count):
            points.append(replace(_point(axes, chosen[turn % len(chosen)], 1000 + 10 * place + turn, kind), only=only))
    return points


def plan_uniform_cases(axes: Sequence[Axis], *, large: bool) -> list[Point]:
    """Cases with all free dimensions equal, up to 16 or larger, for models that run with nothing else."""
    if not any(axis.free for axis in axes):
        return []
    rows = [[size if axis.free else axis.values[0] for axis in axes] for size in _UNIFORM[large]]
    return [_point(axes, row, 500 + 10 * large + draw) for draw, row in enumerate(rows)]


def plan_nothing_cases(axes: Sequence[Axis], level: Level = "full") -> list[Point]:
    """Cases with dimensions of size zero: each alone; in a full comparison also with the others at their least, or zero as well."""
    return [_point(axes, row, 600 + draw) for draw, row in enumerate(nothing_rows(axes, level))]


def _quick_points(axes: Sequence[Axis], override: bool) -> list[Point]:
    rows = size_rows(axes, "quick")
    points = [_point(axes, row, draw, "mixed" if draw == 2 else "normal") for draw, row in enumerate(rows)]
    if len(rows) == 1:
        points.append(_point(axes, rows[0], 100, "mixed"))
    if override:
        points.append(_point(axes, rows[0], 400, override=_OVERRIDES[0]))
    return points


def _middling(axes: Sequence[Axis]) -> list[int]:
    return [7 - 2 * (position % 2) if axis.any_size else axis.values[0] for position, axis in enumerate(axes)]


def _one_large(axes: Sequence[Axis], place: int) -> list[int]:
    """Return the sizes with the free dimension at ``place``, as likely the steps as not, at its largest."""
    free = [axis for axis in axes if axis.free]
    chosen = free[min(place, len(free) - 1)] if free else None
    return [max(axis.values) if axis is chosen else axis.values[0] for axis in axes]


def _broadcast_points(axes: Sequence[Axis], usual: Sequence[int]) -> Iterator[Point]:
    for axis in axes:
        for draw, part in enumerate(axis.parts[:3] if len(axis.parts) > 1 else ()):
            point = _point(axes, usual, 300 + draw)
            yield Point({**point.sizes, **dict.fromkeys(part, 1)}, point.trips, draw=point.draw)


def _point(axes: Sequence[Axis], row: Sequence[int], draw: int, kind: str = "normal", override: str = "") -> Point:
    sizes: dict[str, int] = {}
    trips: dict[str, int] = {}
    for axis, size in zip(axes, row, strict=True):
        (trips if axis.trips else sizes).update(dict.fromkeys(axis.names, size))
    return Point(sizes, trips, kind, draw, override)
