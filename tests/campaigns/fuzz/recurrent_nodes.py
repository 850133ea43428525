"""RNN, GRU and LSTM nodes themselves: alone, between reversals, or a forward and a reverse one that meet in a Concat."""

from typing import Any

from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import concat, filled, slice_, squeeze, transpose
from tests.campaigns.fuzz.values import Dim, Val
from tests.campaigns.fuzz.world import World

__all__ = ["add_recurrent_nodes"]

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def add_recurrent_nodes(outer: Scope) -> list[Val]:
    world = outer.world
    dtype = "float32" if world.real == "float64" else world.real
    rows: Dim = world.choose(["B", "B", 1, 2])
    x = outer.source(dtype, ("T", rows, world.width()))
    kind, hidden = world.choose(list(GATES)), world.width()
    world.feature(f"{kind} node")
    lengths = outer.main.feed("int32", (rows,), "lengths", "T") if world.chance(0.2) else None
    how = world.choose(["alone", "pair", "turned"])
    if how == "alone":
        return _node(outer, kind, hidden, x, lengths, world.choose(["forward", "reverse", "bidirectional"]))
    if how == "turned" and world.opset >= 10:
        turned = slice_(outer, x, -1, -(2**31), 0, -1, length="T")
        y = squeeze(outer, _node(outer, kind, hidden, turned, None, "forward")[0], 1)
        return [slice_(outer, y, -1, -(2**31), 0, -1, length="T")]
    sides = [_node(outer, kind, hidden, x, lengths, way)[0] for way in ("forward", "reverse")]
    if world.chance(0.5):
        return [concat(outer, [squeeze(outer, side, 1) for side in sides], -1)]
    both = concat(outer, sides, 1)
    return [transpose(outer, both, [0, 2, 1, 3]) if world.chance(0.5) else both]


def _node(outer: Scope, kind: str, hidden: int, x: Val, lengths: Val | None, direction: str) -> list[Val]:
    world = outer.world
    ways = 2 if direction == "bidirectional" else 1
    time, rows, features = x.shape
    assert isinstance(features, int)
    attributes: dict[str, Any] = {"hidden_size": hidden}
    if direction != "forward" or world.chance(0.3):
        attributes["direction"] = direction
    if kind == "GRU" and world.chance(0.5):
        attributes["linear_before_reset"] = 1
    gates = GATES[kind]
    w = outer.const(world.array(x.dtype, (ways, gates * hidden, features), 0.6), x.dtype, "outer")
    r = outer.const(world.array(x.dtype, (ways, gates * hidden, hidden), 0.6), x.dtype, "outer")
    b = outer.const(world.array(x.dtype, (ways, 2 * gates * hidden)), x.dtype, "outer") if world.chance(0.6) else None
    state: tuple[Dim, ...] = (ways, rows, hidden)
    operands: list[Val | None] = [x, w, r, b, lengths]
    if world.chance(0.5):
        operands += [_start(outer, world, x.dtype, state) for _ in range(2 if kind == "LSTM" else 1)]
    while operands[-1] is None:
        operands.pop()
    outs = [x.of((time, ways, rows, hidden)), x.of(state), *([x.of(state)] if kind == "LSTM" else [])]
    return outer.ops(kind, operands, outs[: world.between(1, len(outs))], **attributes)


def _start(outer: Scope, world: World, dtype: str, dims: tuple[Dim, ...]) -> Val:
    return outer.source(dtype, dims) if world.chance(0.5) else filled(outer, dtype, dims)
