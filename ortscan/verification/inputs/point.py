"""One case to try: the sizes, the kind of values, and the seed of these values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PlannedCase", "Point"]


@dataclass(frozen=True)
class Point:
    """A case to try.

    Attributes:
        sizes: the sizes of free dimensions, by name.
        trips: the trip counts, by input.
        kind: the kind of values, such as ``normal``, ``zeros`` or ``NaN``.
        seed: a number that seeds the values, so that they differ between cases.
        override: the kind of values that are fed instead of the defaults of inputs; empty if the defaults are used.
        only_input: the only input with values of ``kind`` or ``override``; empty if all inputs have such values.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    trips: Mapping[str, int] = field(default_factory=dict)
    kind: str = "normal"
    seed: int = 0
    override: str = ""
    only_input: str = ""


@dataclass(frozen=True)
class PlannedCase:
    """A case, and the ways to draw its integers (``attempts``) in the order in which they are tried."""

    point: Point
    attempts: tuple[str, ...]

    def varied(self, attempt: str) -> dict[str, Any]:
        """Return the unusual properties of the case for a report. Sizes are not included.

        ``attempt`` is the way in which the integers of the case were drawn, or empty if the original did not run.
        """
        point = self.point
        alone = f" for '{point.only_input}'" if point.only_input else ""
        varied: dict[str, Any] = dict(point.trips)
        if point.kind != "normal":
            varied["values"] = point.kind + alone
        if point.override:
            varied["defaults"] = point.override + alone
        if attempt not in ("", self.attempts[0]):
            varied["integers"] = attempt
        return varied
