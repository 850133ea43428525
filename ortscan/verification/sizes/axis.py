"""What varies from case to case, sizes of dimensions and trip counts, and the numbers each is tried with."""

from collections.abc import Sequence
from dataclasses import dataclass

from ortscan.running.budget import Level
from ortscan.verification.sizes.constraints import Sizes
from ortscan.verification.values.turning_points import Known

__all__ = ["Axis", "dimension_values", "likely_values", "raised", "trip_values"]

_LARGE = (33, 61, 17, 29)
_LARGER = (131, 137, 139, 149)
_ODD = (11, 13, 9, 15)
_USUAL = (3, 2, 7, 5, 4, 6, 8)
_LEAST_TRIPS, _MOST_TRIPS, _FEW = -2, 200, 3
_BEYOND = (10, 13, 7, 19)
_ONE_MORE = {3: 5, 2: 4}


@dataclass(frozen=True)
class Axis:
    """One thing that varies: dimensions that are equal, or one trip count. The first value is the usual one.

    Dimensions in different ``parts`` may differ where one of them is 1 (broadcasting).
    """

    parts: tuple[tuple[str, ...], ...]
    values: tuple[int, ...]
    trips: bool = False

    @property
    def names(self) -> list[str]:
        """The dimensions, or the trip count."""
        return [name for part in self.parts for name in part]

    @property
    def free(self) -> bool:
        """Whether this is a dimension with more than one size to try."""
        return not self.trips and len(self.values) > 1

    @property
    def any_size(self) -> bool:
        """Whether this is a dimension that nothing says the size of."""
        return not self.trips and len(self.values) > 2

    @property
    def least(self) -> int:
        """The least value above 0."""
        return min((value for value in self.values if value > 0), default=self.values[0])

    @property
    def beyond(self) -> int:
        """A size larger than all values of a dimension that may have any; else the largest value."""
        return 2 * max(self.values) + 1 if self.any_size else max(self.values)


def raised(values: tuple[int, ...], least: int) -> tuple[int, ...]:
    """Return sizes to try for a dimension that has to be ``least`` or more, or a multiple of it, in the place of ``values``."""
    more = [least + value - 1 for value in values if value <= max(least, _FEW)]
    return values if least <= 1 else tuple(dict.fromkeys((more[0], least, 2 * least, 3 * least, *more)))


def trip_values(level: Level, named: Sequence[Known] = ()) -> tuple[int, ...]:
    """The trip counts that are tried, the usual one first; in a full comparison some of the ``named`` ones that soon end, too."""
    if level == "quick":
        return (3, 1, 2, 0)
    more = [value for value in named if isinstance(value, int) and _LEAST_TRIPS <= value <= _MOST_TRIPS]
    return tuple(dict.fromkeys((3, 1, 2, 0, 7, 4, 5, 6, 8, 17, 11, 131, -1, *more[:_FEW])))


def dimension_values(position: int, level: Level = "full") -> tuple[int, ...]:
    """The sizes the ``position``-th free dimension is tried with, the usual one first."""
    usual = _USUAL[position % len(_USUAL)]
    if level == "quick":
        return tuple(dict.fromkeys((usual, 1, 2, 3, _ONE_MORE.get(usual, usual))))
    large, larger, odd = (series[position % len(series)] for series in (_LARGE, _LARGER, _ODD))
    return tuple(dict.fromkeys((usual, 1, 2, 3, 7, large, odd, 4, 5, 6, 8, 16, larger)))


def likely_values(
    parts: Sequence[Sequence[str]], beside: int, position: int, learned: Sizes | None, level: Level, asked: int
) -> tuple[int, ...]:
    """The sizes to try for dimensions that are equal to ``beside`` or broadcast with it, where that is more than 1.

    ``asked``: what the result compares sizes with, beyond which one is tried, too; 0 for nothing.
    """
    if learned is not None:
        number = next((size for part in parts if (size := learned.number(part[0])) is not None), None)
        if number is not None:
            return (number,)
        likely = learned.likely_number(parts[0][0])
        beside = beside if likely is None else likely
    if beside != 1:
        return beside, 1
    values = dimension_values(position, level)
    return (*values, asked + _BEYOND[position % len(_BEYOND)]) if asked and max(values) <= asked else values
