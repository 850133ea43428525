"""Bodies of random operators: what leaves them is made of everything in them, so nothing is dead by chance alone."""

from collections.abc import Sequence

from tests.campaigns.fuzz.growths import grow
from tests.campaigns.fuzz.recurrence import Recurrence, State, Stream
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import cast, elementwise, reduce
from tests.campaigns.fuzz.values import FLOATS, INTS, Dim, Val
from tests.campaigns.fuzz.world import World

__all__ = ["random_body", "random_map", "random_state"]

Vals = Sequence[Val]


def _element(world: World, lead: tuple[Dim, ...]) -> tuple[Dim, ...]:
    return world.choose(
        [(), (*lead, world.width()), (*lead, world.width()), (world.width(),), (*lead, world.width(), world.width())]
    )


def _streams(world: World, lead: tuple[Dim, ...]) -> list[Stream]:
    types = [world.real, world.real, world.real, "int64", "bool", "int32", "string"]
    return [Stream(world.choose(types), _element(world, lead)) for _ in range(world.choose([1, 1, 2, 3]))]


def random_body(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    types = [world.real, world.real, world.real, "int64", "bool"]
    states = [State(world.choose(types), _element(world, lead)) for _ in range(world.choose([1, 1, 2]))]
    return _random("random", world, states, _streams(world, lead))


def random_map(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    return _random("random map", world, [], _streams(world, lead))


def random_state(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """A state that counts, among random operators: sizes made of it change from step to step."""
    return _random("random with a counter", world, [State("int64", (), 0.0)], _streams(world, lead), counts=True)


def _random(name: str, world: World, states: list[State], streams: list[Stream], counts: bool = False) -> Recurrence:
    def step(s: Scope, own: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        for value in [*own, *slices]:
            if s.runs("Identity", value.dtype) and s.world.chance(0.1):
                s.op("Identity", [value], value.dims)
        before = len(s.nodes)
        grow(s, s.world.between(2, 12))
        new = [elementwise(s, "Add", own[0], s.int(1))] if counts else [_updated(s, state) for state in own]
        grow(s, s.world.between(0, 4))
        made = {name for node in s.nodes[before:] for name in node.output}
        unused = made - {name for node in s.nodes for name in node.input}
        out = [_summed(s, [value for value in s.pool if value.name in unused and value.dims is not None])]
        plain = [v for v in s.pool if v.dims is not None and v.name in made and not s.world.derived & set(v.shape)]
        out += [s.world.choose(plain) for _ in range(s.world.between(0, 2)) if plain]
        return new, [value for value in out if value is not None]

    return Recurrence(name, states, streams, step)


def _updated(s: Scope, state: Val) -> Val:
    """A new value for a state: of its type and sizes."""
    same = s.pick(lambda v: v.dtype == state.dtype and v.dims == state.dims and v.name in s.produced, own=1.0)
    if state.dtype not in FLOATS + INTS:
        return same or s.op("Identity", [state], state.dims)
    if same is not None and s.world.chance(0.6):
        return same
    news = s.pick(lambda v: v.dtype == state.dtype and v.name != state.name)
    if news is None:
        return s.op("Identity", [state], state.dims)
    if news.rank and news.dims != state.dims and s.runs("ReduceMax", news.dtype):
        news = reduce(
            s, s.world.choose(["ReduceMax", "ReduceSum"]) if not s.world.derived & set(news.shape) else "ReduceSum", news, None
        )
    if news.rank and news.dims != state.dims:
        return s.op("Identity", [state], state.dims)
    new = elementwise(s, s.world.choose(["Add", "Sub", "Mul"]) if state.dtype in FLOATS else "Add", state, news)
    return s.op("Tanh", [new], new.dims) if state.dtype in FLOATS and s.world.chance(0.5) else new


def _summed(s: Scope, values: Vals) -> Val:
    """One number made of all of them."""
    total: Val | None = None
    for value in values:
        if value.dtype == "string":
            continue
        number = cast(s, value, "float32")
        if number.rank:
            number = reduce(
                s,
                s.world.choose(["ReduceSum", "ReduceMean"] if not s.world.derived & set(number.shape) else ["ReduceSum"]),
                number,
                None,
            )
        total = number if total is None else elementwise(s, "Add", total, number)
    return total or s.const(0.5, "float32")
