"""What is done to a model once it is drawn: one kind of change a file."""

from tests.fuzz.case import Case
from tests.fuzz.world import World

__all__ = ["twisted"]


def twisted(case: Case, world: World) -> None:
    """Change the model in place, in ways that keep it one that runs, or so one hopes."""
