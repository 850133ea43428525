"""Saying which sizes and trip counts are not tried together."""

from collections.abc import Iterable, Iterator, Sequence

from ortscan.running.budget import Level
from ortscan.verification.given.interface import quoted
from ortscan.verification.sizes.axis import Axis
from ortscan.verification.sizes.rows import MOST_ALONE, MOST_PAIRED, free_axes, varying_axes

__all__ = ["untried_rows"]

_MOST_NAMES = 8


def untried_rows(axes: Sequence[Axis], level: Level) -> Iterator[str]:
    """Say of which dimensions and trip counts other numbers are not tried, and of which some are not tried beside others."""
    if level != "full":
        return
    varying, free = varying_axes(axes), free_axes(axes)
    if listed := _names(axis for axis in axes if axis.any_size):
        yield f"other sizes of {listed}"
    if listed := _names(axis for axis in varying if axis.trips):
        yield f"other trip counts of {listed}"
    if listed := _names(varying[MOST_ALONE:]):
        yield f"{listed} alone largest or 1, or as large as just one other"
    if listed := _names(free[MOST_ALONE:]):
        yield f"0 for one of {listed} alone"
    if listed := _names(varying[MOST_PAIRED:]):
        yield f"just two that are 1 or 0 where one of them is {listed}"


def _names(axes: Iterable[Axis]) -> str:
    names = [name for axis in axes for name in axis.names]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return quoted(names[:_MOST_NAMES]) + more
