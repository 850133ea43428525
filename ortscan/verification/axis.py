"""What varies from case to case, sizes of dimensions and trip counts, and the numbers each is tried with."""

from dataclasses import dataclass

from ortscan.verification.budget import Level

__all__ = ["Axis", "dimension_values", "trip_values"]

_LARGE = (33, 61, 17, 29)
_LARGER = (131, 137, 139, 149)
_ODD = (11, 13, 9, 15)
_USUAL = (3, 2, 7, 5, 4, 6, 8)
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


def trip_values(level: Level) -> tuple[int, ...]:
    """The trip counts that are tried, the usual one first."""
    return (3, 1, 2, 0) if level == "quick" else (3, 1, 2, 0, 7, 4, 5, 6, 8, 17, 11, 131, -1)


def dimension_values(position: int, level: Level = "full") -> tuple[int, ...]:
    """The sizes the ``position``-th free dimension is tried with, the usual one first."""
    usual = _USUAL[position % len(_USUAL)]
    if level == "quick":
        return tuple(dict.fromkeys((usual, 1, 2, 3, _ONE_MORE.get(usual, usual))))
    large, larger, odd = (series[position % len(series)] for series in (_LARGE, _LARGER, _ODD))
    return tuple(dict.fromkeys((usual, 1, 2, 3, 7, large, odd, 4, 5, 6, 8, 16, larger)))
