"""States that double an error in each step: small differences of rounding become large ones."""

from collections.abc import Sequence

from tests.campaigns.fuzz.recurrence import Recurrence, State, Stream
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import elementwise, linear, reduce
from tests.campaigns.fuzz.values import Dim, Val
from tests.campaigns.fuzz.world import World

__all__ = ["logistic_map", "normalized_twice"]

Vals = Sequence[Val]


def logistic_map(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """``x' = 3.9 x (1 - x)``, with the start and the drive squeezed into 0 to 1."""
    dims = (*lead, world.width())

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        x = elementwise(s, "Sigmoid", elementwise(s, "Add", states[0], slices[0]))
        for _ in range(2):
            rest = elementwise(s, "Sub", s.real(1.0, x.dtype), x)
            x = elementwise(s, "Mul", s.real(3.9, x.dtype), elementwise(s, "Mul", x, rest))
        return [x], [x]

    return Recurrence("logistic map", [State(world.real, dims)], [Stream(world.real, dims)], step)


def normalized_twice(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """A cell whose pre-activation and state are normalized by their mean and deviation."""
    width = world.choose([3, 4])
    dims = (*lead, width)

    def normalized(s: Scope, x: Val) -> Val:
        centred = elementwise(s, "Sub", x, reduce(s, "ReduceMean", x, [-1], True))
        variance = reduce(s, "ReduceMean", elementwise(s, "Mul", centred, centred), [-1], True)
        deviation = s.op("Sqrt", [elementwise(s, "Add", variance, s.real(1e-3, x.dtype))], variance.dims)
        return elementwise(s, "Div", centred, deviation)

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        drive = elementwise(s, "Add", linear(s, states[0], width, scale=2.0), slices[0])
        new = elementwise(s, "Tanh", normalized(s, drive))
        return [new], [normalized(s, new) if s.world.chance(0.5) else new]

    return Recurrence("cell normalized", [State(world.real, dims)], [Stream(world.real, dims)], step)
