"""A loop in the body of a loop."""

from collections.abc import Sequence

from tests.campaigns.fuzz.recurrence import Recurrence, State, Stream
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import cast, elementwise, reduce
from tests.campaigns.fuzz.values import FLOATS, Dim, Val
from tests.campaigns.fuzz.world import World

__all__ = ["nested"]

Vals = Sequence[Val]


def nested(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """What an inner loop gives goes into the state, or is handed out."""
    width = world.width()
    dims = (*lead, width)

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        from tests.campaigns.fuzz.model_builder import add_block

        first = elementwise(s, "Add", *slices, *states)
        s.world.depth += 1
        results = [value for value in add_block(s) if value.dims is not None] if s.world.depth < 3 else []
        s.world.depth -= 1
        numbers = [value for value in results if value.dtype in (*FLOATS, "int64", "int32", "bool")]
        total = first
        for value in numbers[:2]:
            number = cast(s, value, s.world.real)
            number = reduce(s, "ReduceSum", number, None) if number.rank else number
            total = elementwise(s, "Add", total, number)
        plain = [v for v in results if not s.world.derived & set(v.shape)]
        return [elementwise(s, "Tanh", total)], [total, *plain[: s.world.between(0, 1)]]

    return Recurrence("nested", [State(world.real, dims)], [Stream(world.real, dims)], step)
