"""One block of a model: a loop, spelt one way or another."""

from tests.fuzz.idioms import IDIOMS
from tests.fuzz.scope import Scope
from tests.fuzz.spellings.loops import as_loop
from tests.fuzz.spellings.scans import as_scan
from tests.fuzz.values import Dim, Val

__all__ = ["add_block"]


def add_block(outer: Scope, idiom: str = "") -> list[Val]:
    """Add a loop to the graph and give its results."""
    world = outer.world
    name = idiom or world.choose(list(IDIOMS))
    time: Dim = world.choose(["T", "T", "T", world.between(1, 4)])
    scan = world.opset >= 8 and world.chance(0.55)
    batched = scan and world.opset == 8
    if batched:
        lead: tuple[Dim, ...] = () if world.chance(0.85) else (2,)
    else:
        lead = world.choose([("B",), ("B",), ("B",), (), (1,), (2,)])
    made = IDIOMS[name](world, lead)
    world.feature(f"{'Scan' if scan else 'Loop'}: {made.name}")
    if scan:
        return as_scan(outer, made, time, "B" if batched else None)
    return as_loop(outer, made, time)
