"""One case to try, as values are made up for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Point"]


@dataclass(frozen=True)
class Point:
    """One case to try: sizes of dimensions and trip counts by name, the kind of values, and a number to draw them with.

    ``only``: the one input whose values are of that kind, the others' are normal; all where it is empty. ``override`` also replaces
    the defaults of inputs that have one, and says by what; where one is the ``only`` one, the others are replaced by near values.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    trips: Mapping[str, int] = field(default_factory=dict)
    kind: str = "normal"
    draw: int = 0
    override: str = ""
    only: str = ""
