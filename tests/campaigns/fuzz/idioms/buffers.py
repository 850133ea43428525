"""States that are tables: rows written and read at a number of the step, rings, dynamic programming."""

from collections.abc import Sequence

import numpy as np

from tests.campaigns.fuzz.recurrence import Recurrence, State, Stream
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import elementwise, gather, reduce, reshape, unsqueeze
from tests.campaigns.fuzz.values import Dim, Val
from tests.campaigns.fuzz.world import World

__all__ = ["table"]

Vals = Sequence[Val]


def table(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """A table whose row at the count of steps is written, and whose rows are read."""
    width, rows = world.width(), 5
    element = (*lead, width)
    kind = world.choose(["nd", "elements", "where"])

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        n, held = states
        nxt = elementwise(s, "Add", n, s.int(1))
        place = n
        if s.world.chance(0.3) and s.runs("Mod", "int64"):
            place = elementwise(s, "Mod", n, s.int(s.world.choose([2, 3])))
        before = gather(s, held, place) if s.world.chance(0.5) else None
        value = slices[0] if before is None else elementwise(s, "Add", slices[0], before)
        if s.world.opset < 11 or (kind == "where" and s.runs("Where", held.dtype)):
            if not s.runs("Where", held.dtype) or not s.runs("Equal", "int64"):
                return [nxt, elementwise(s, "Add", held, value)], [value]
            line = s.const(np.arange(rows).reshape(rows, *[1] * len(element)))
            new = s.op("Where", [elementwise(s, "Equal", line, place, dtype="bool"), value, held], held.dims, held.dtype)
        elif kind == "nd":
            new = s.op("ScatterND", [held, reshape(s, place, (1, 1)), unsqueeze(s, value, 0)], held.dims)
        else:
            from tests.campaigns.fuzz.spelt import expand

            update = unsqueeze(s, value, 0)
            index = expand(s, reshape(s, place, (1,) * update.rank), update.shape)
            new = s.op("ScatterElements", [held, index, update], held.dims, axis=0)
        read = s.world.choose(["sum", "row", "none"])
        if read == "sum":
            return [nxt, new], [reduce(s, "ReduceSum", new, [0])]
        return [nxt, new], [gather(s, new, s.int(0))] if read == "row" else [s.op("Identity", [value], value.dims)]

    states = [State("int64", (), 0.0), State(world.real, (rows, *element), world.choose(["zeros", "source"]))]
    return Recurrence(f"table by {kind}", states, [Stream(world.real, element)], step)
