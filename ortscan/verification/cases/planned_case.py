"""One case of a comparison, as it is planned and as reports tell it from others."""

from dataclasses import dataclass
from typing import Any

from ortscan.verification.values.point import Point

__all__ = ["PlannedCase"]


@dataclass(frozen=True)
class PlannedCase:
    """One case: a point of the plan, and the ways to draw its integers in the order to try them."""

    point: Point
    attempts: tuple[str, ...]

    def varied(self, attempt: str) -> dict[str, Any]:
        """What makes the case special beside its sizes, with its integers drawn as ``attempt`` says; none where it is empty."""
        point = self.point
        alone = f" for '{point.only}'" if point.only else ""
        varied: dict[str, Any] = dict(point.trips)
        if point.kind != "normal":
            varied["values"] = point.kind + alone
        if point.override:
            varied["defaults"] = point.override + alone
        if self.attempts and attempt not in ("", self.attempts[0]):
            varied["integers"] = attempt
        return varied
