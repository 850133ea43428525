"""What is done to a model once it is drawn: one kind of change a file."""

from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.twists.dead_parts import add_dead_parts
from tests.campaigns.fuzz.twists.declarations import list_constants, make_overridable, misdeclare
from tests.campaigns.fuzz.twists.functions import outline
from tests.campaigns.fuzz.twists.mutations import mutate
from tests.campaigns.fuzz.twists.names import rename
from tests.campaigns.fuzz.world import World

__all__ = ["twisted"]


def twisted(case: Case, world: World) -> None:
    """Change the model in place, in ways that keep it one that runs, or so one hopes."""
    if world.chance(0.4):
        mutate(case.model, world)
    if world.chance(0.2):
        add_dead_parts(case.model, world)
    if world.chance(0.15):
        make_overridable(case, world)
    if world.chance(0.1):
        list_constants(case.model, world)
    if world.chance(0.05):
        misdeclare(case.model, world)
    if world.chance(0.4):
        rename(case, world)
    if world.chance(0.12):
        outline(case, world)
