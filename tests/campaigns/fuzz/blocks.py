"""One block of a model: a loop, spelt one way or another, or in a branch; or recurrent nodes.

Works round ORT-GATHER-STRINGS.
"""

from tests.campaigns.fuzz.idioms import IDIOMS
from tests.campaigns.fuzz.recurrent_nodes import add_recurrent_nodes
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spellings.loops import as_loop
from tests.campaigns.fuzz.spellings.scans import as_scan
from tests.campaigns.fuzz.spelt import elementwise, filled
from tests.campaigns.fuzz.values import FLOATS, Dim, Val

__all__ = ["add_block"]


def add_block(outer: Scope, idiom: str = "") -> list[Val]:
    """Add a loop, or something like it, to the graph and give its results."""
    world = outer.world
    if not idiom and world.chance(0.07):
        return add_recurrent_nodes(outer)
    if world.chance(0.08) and world.depth == 0:
        return _in_branch(outer, idiom)
    return _loop(outer, idiom)


def _loop(outer: Scope, idiom: str) -> list[Val]:
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
    if not scan and world.opset < 10 and any(stream.dtype == "string" for stream in made.streams):
        made = IDIOMS["elman"](world, lead)  # Gather, which reads there, garbles strings
    world.feature(f"{'Scan' if scan else 'Loop'}: {made.name}")
    if scan:
        return as_scan(outer, made, time, "B" if batched else None)
    return as_loop(outer, made, time)


def _in_branch(outer: Scope, idiom: str) -> list[Val]:
    """The loop in one branch of an If; the other gives something of the same sizes."""
    world = outer.world
    one, other = outer.inner(), outer.inner()
    results = [value for value in _loop(one, idiom) if value.dims is not None and value.dtype in FLOATS]
    if not results:
        return []
    kept = [one.op("Identity", [value], value.dims) for value in results]
    others: list[Val] = []
    for value in kept:
        known = all(isinstance(dim, int) or dim in ("B", "T") for dim in value.shape)
        zeros = filled(other, value.dtype, value.shape if known else (), 0.5)
        others.append(elementwise(other, "Add", zeros, zeros))
    world.feature("loop in a branch")
    mask = outer.main.feed("bool", ()) if world.chance(0.6) else outer.const(world.choose([True, False]), "bool")
    graphs = [one.graph(world.name("then"), [], kept, "types"), other.graph(world.name("else"), [], others, "types")]
    outs = [Val("", value.dtype, value.dims) for value in kept]
    return outer.ops("If", [mask], outs, then_branch=graphs[0], else_branch=graphs[1])
