"""A loop before it is spelt: states, streams, and what one step does with them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.values import Dim, Val

__all__ = ["Recurrence", "State", "StepFunction", "Stream"]


@dataclass(frozen=True)
class State:
    """A state as a body sees it. ``start`` says what it begins with: ``source`` (whatever is there), ``zeros``, or a number."""

    dtype: str
    dims: tuple[Dim, ...]
    start: str | float = "source"


@dataclass(frozen=True)
class Stream:
    """What a body reads one element of in each step. ``kind`` is what is fed, as in ``Fed``."""

    dtype: str
    dims: tuple[Dim, ...]
    kind: str = "any"


StepFunction = Callable[[Scope, Sequence[Val], Sequence[Val]], tuple[list[Val], list[Val]]]


@dataclass(frozen=True)
class Recurrence:
    """``step(body, states, slices)`` gives the new states and what is handed out. ``lead`` are the sizes of rows in a body."""

    name: str
    states: Sequence[State]
    streams: Sequence[Stream]
    step: StepFunction
