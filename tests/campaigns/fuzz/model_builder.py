"""Draw a model: its blocks are loops in some spelling, loops in branches, and recurrent nodes.

Works around ORT-GATHER-STRINGS.
"""

import random

from onnx import ModelProto, helper

from tests.campaigns.fuzz.after_loops import worked_on
from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.drawn_options import drawn_options
from tests.campaigns.fuzz.feeding import drawn_feeds
from tests.campaigns.fuzz.idioms import IDIOMS
from tests.campaigns.fuzz.recurrent_nodes import add_recurrent_nodes
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spellings.loops import as_loop
from tests.campaigns.fuzz.spellings.scans import as_scan
from tests.campaigns.fuzz.spelt import elementwise, filled
from tests.campaigns.fuzz.twists import twisted
from tests.campaigns.fuzz.values import FLOATS, Dim, Val, typed_info
from tests.campaigns.fuzz.world import World

__all__ = ["add_block", "draw_case", "drawn_world", "outputs_of", "written_model"]


OPSETS = [7, 8, 8, 8, 9, 10, 11, 11, 12, 13, 13, 14, 15, 16, 17, 17, 18, 18, 19, 20, 21, 22, 23, 24, 25, 26]


def draw_case(seed: int, number: int, kind: str = "optimize", idiom: str = "", targets: tuple[str, ...] = ()) -> Case:
    """Model ``number`` of ``seed``, with what it is fed and the options. ``idiom`` names one that its first block shows."""
    dice = random.Random(f"{seed}/{number}/{kind}")
    world = drawn_world(dice, dice.choice(OPSETS))
    main = Scope(world)
    results: list[Val] = []
    for k in range(world.choose([1, 1, 1, 2, 2, 3])):
        results += worked_on(main, add_block(main, idiom if k == 0 else ""))
    model = written_model(world, main, outputs_of(main, results))
    case = Case(model, drawn_feeds(world), kind, {})
    twisted(case, world)
    case.options = drawn_options(world, case, targets)
    case.about = {
        "seed": seed,
        "number": number,
        "kind": kind,
        "opset": world.opset,
        "ir": world.ir_version,
        "features": sorted(world.features),
    }
    return case


def drawn_world(dice: random.Random, opset: int) -> World:
    sizes = {"B": dice.choice([1, 1, 2, 3]), "T": dice.choice([1, 2, 3, 4, 4])}
    declared = {name: dice.choice(["static", "named", "named", "unsaid"]) for name in sizes}
    real = dice.choice(["float32"] * 8 + ["float64", "float16"])
    types = dice.choice(["sizes", "sizes", "ranks", "types", "untyped", "mixed"])
    return World(dice, opset, dice.choice([3, 4, 6, 7, 8, 9, 10, 11, 12, 13]), real, types, sizes, declared)


def outputs_of(main: Scope, results: list[Val]) -> list[Val]:
    world = main.world
    chosen = [value for value in results if not world.chance(0.25)] or results[:1] or [main.const(0.5, "float32")]
    kept: list[Val] = []
    for value in chosen:
        again = value.name not in main.produced or value.name in [v.name for v in kept]
        kept.append(main.op("Identity", [value], value.dims) if again else value)
    return kept


def written_model(world: World, main: Scope, outputs: list[Val]) -> ModelProto:
    inputs = [typed_info(fed.value.name, fed.value, world.written(fed.value.shape)) for fed in world.inputs]
    if world.ir_version < 4:
        inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in main.initializers]
    exact = not world.chance(0.3)
    infos = [typed_info(value.name, value, None if value.dims is None else world.written(value.shape, exact)) for value in outputs]
    graph = helper.make_graph(main.nodes, "main", inputs, infos, main.initializers)
    imports = [helper.make_opsetid("", world.opset)]
    if "com.microsoft operator" in world.features:
        imports.append(helper.make_opsetid("com.microsoft", 1))
    return helper.make_model(graph, ir_version=world.ir_version, opset_imports=imports)


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
