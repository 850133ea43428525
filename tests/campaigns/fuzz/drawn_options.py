"""What is asked of ``optimize`` or ``migrate``."""

from typing import Any

from ortscan.targets import TARGETS
from rewrites.registry import ON_REQUEST, RULES
from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.world import World

__all__ = ["MIGRATED_TO", "drawn_options"]

_LEAVE_LOOPS = ["loop-fission", "recurrent-cell", "state-fission", "unroll"]
MIGRATED_TO = (9, 11, 13, 16, 18, 21, 25, 26)


def drawn_options(world: World, case: Case, targets: tuple[str, ...] = ()) -> dict[str, Any]:
    if case.kind == "migrate":
        return {"opset": world.choose(MIGRATED_TO)}
    if case.kind == "native":
        return {"target": "cpu", "native": True, **({"skip": _LEAVE_LOOPS} if world.chance(0.5) else {})}
    names = targets or (*TARGETS, *["cpu"] * 8, *["onnx"] * 3)
    options: dict[str, Any] = {"target": world.choose(names)}
    if world.chance(0.2):
        options["opset"] = world.choose(["keep", "keep", max(world.opset, world.choose(MIGRATED_TO))])
    fixed = {name: list(array.shape) for name, array in case.feeds[0].items()}
    if world.chance(0.15) and fixed:
        options["fix_shapes"] = fixed if world.chance(0.6) else dict([world.choose(list(fixed.items()))])
    elif world.chance(0.1):
        options["shapes"] = fixed
    if world.chance(0.15):
        options["max_unroll"] = world.choose([0, 2, 4, 100])
    if world.chance(0.2):
        options["memory_budget"] = world.choose([1, 64, 1024])
    if world.chance(0.1):
        options["fast_math"] = True
    rules = list(dict.fromkeys(rule.name for rule in RULES))
    if world.chance(0.12):
        options["passes"] = (
            world.dice.sample(rules, world.between(1, 8))
            if world.chance(0.5)
            else ["default", *dict.fromkeys(rule.name for rule in ON_REQUEST)]
        )
    elif world.chance(0.12):
        options["skip"] = world.dice.sample(rules, world.between(1, 4))
    return options
