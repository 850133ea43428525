"""Draws a whole model: blocks of loops, what lies between them, and the interface. Model k of seed S is always the same."""

import random

from onnx import ModelProto, helper

from tests.campaigns.fuzz.after_loops import worked_on
from tests.campaigns.fuzz.blocks import add_block
from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.drawn_options import drawn_options
from tests.campaigns.fuzz.feeding import drawn_feeds
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.twists import twisted
from tests.campaigns.fuzz.values import Val, typed_info
from tests.campaigns.fuzz.world import World

__all__ = ["draw_case"]

OPSETS = [7, 8, 8, 8, 9, 10, 11, 11, 12, 13, 13, 14, 15, 16, 17, 17, 18, 18, 19, 20, 21, 22, 23, 24, 25, 26]


def draw_case(seed: int, number: int, kind: str = "optimize", idiom: str = "", targets: tuple[str, ...] = ()) -> Case:
    """Model ``number`` of ``seed``, with what it is fed and the options. ``idiom`` names one that its first block shows."""
    dice = random.Random(f"{seed}/{number}/{kind}")
    world = _drawn_world(dice)
    main = Scope(world)
    results: list[Val] = []
    for k in range(world.choose([1, 1, 1, 2, 2, 3])):
        results += worked_on(main, add_block(main, idiom if k == 0 else ""))
    outputs = _outputs(main, results)
    model = _model(world, main, outputs)
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


def _drawn_world(dice: random.Random) -> World:
    opset = dice.choice(OPSETS)
    sizes = {"B": dice.choice([1, 1, 2, 3]), "T": dice.choice([1, 2, 3, 4, 4])}
    declared = {name: dice.choice(["static", "named", "named", "unsaid"]) for name in sizes}
    real = dice.choice(["float32"] * 8 + ["float64", "float16"])
    types = dice.choice(["sizes", "sizes", "ranks", "types", "untyped", "mixed"])
    return World(dice, opset, dice.choice([3, 4, 6, 7, 8, 9, 10, 11, 12, 13]), real, types, sizes, declared)


def _outputs(main: Scope, results: list[Val]) -> list[Val]:
    world = main.world
    chosen = [value for value in results if not world.chance(0.25)] or results[:1] or [main.const(0.5, "float32")]
    kept: list[Val] = []
    for value in chosen:
        again = value.name not in main.produced or value.name in [v.name for v in kept]
        kept.append(main.op("Identity", [value], value.dims) if again else value)
    return kept


def _model(world: World, main: Scope, outputs: list[Val]) -> ModelProto:
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
