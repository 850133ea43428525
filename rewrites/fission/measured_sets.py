"""Sets of values with the sum of their sizes, cheap to unite: thousands of them grow out of each other along a body."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import onnx_ir as ir

__all__ = ["EMPTY", "MeasuredSet", "MeasuredSets"]


@dataclass(frozen=True)
class MeasuredSet:
    """``members``: a bit for each value, as ``MeasuredSets`` numbers them. ``size``: the sum of their sizes."""

    members: int
    size: int


EMPTY = MeasuredSet(0, 0)


class MeasuredSets:
    """Makes sets of values whose sizes ``measure`` gives."""

    def __init__(self, measure: Callable[[ir.Value], int]) -> None:
        self._measure = measure
        self._numbers: dict[ir.Value, int] = {}
        self._sizes: list[int] = []

    def of(self, values: Iterable[ir.Value]) -> MeasuredSet:
        """Return the set of ``values``."""
        return self.union(MeasuredSet(1 << number, self._sizes[number]) for number in map(self._number, values))

    def union(self, sets: Iterable[MeasuredSet]) -> MeasuredSet:
        """Return the union of ``sets``; the work is in what they do not share."""
        first, *rest = sorted(sets, key=lambda one: one.size, reverse=True) or [EMPTY]
        members, size = first.members, first.size
        for one in rest:
            new = one.members & ~members
            members |= new
            while new:
                lowest = new & -new
                size += self._sizes[lowest.bit_length() - 1]
                new ^= lowest
        return MeasuredSet(members, size)

    def _number(self, value: ir.Value) -> int:
        number = self._numbers.setdefault(value, len(self._sizes))
        if number == len(self._sizes):
            self._sizes.append(self._measure(value))
        return number
