"""A recurrence as a Loop: how slices are read, how results are kept, how the steps are counted, each drawn on its own.

Works around ORT-OUTER-VALUE-RETURNED.
"""

from collections.abc import Sequence

from tests.campaigns.fuzz.recurrence import Recurrence
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spellings.counting import drawn_counting
from tests.campaigns.fuzz.spellings.reading import drawn_reader
from tests.campaigns.fuzz.spellings.scans import begun, body_input
from tests.campaigns.fuzz.spellings.writing import Writer, drawn_writer
from tests.campaigns.fuzz.spelt import reduce
from tests.campaigns.fuzz.values import FLOATS, Dim, Val

__all__ = ["as_loop"]


def as_loop(outer: Scope, made: Recurrence, time: Dim) -> list[Val]:
    """Final states and results, each of the results with the steps in front."""
    world = outer.world
    starts = [begun(outer, state, state.dims) for state in made.states]
    readers = [drawn_reader(outer, stream, time) for stream in made.streams]
    writers: list[Writer] = []
    counting = drawn_counting(outer, time)
    body = outer.inner()
    index = body_input(body, "int64", (), "i")
    condition = body_input(body, "bool", (), "cond")
    own = [body_input(body, state.dtype, state.dims, "s") for state in made.states]
    carried = list(starts)
    extra_in: list[Val] = []
    extra_out: list[Val] = []

    def carry(start: Val) -> Val:
        """A state more, and its value in this step; its new value is added by ``extra_out``."""
        carried.append(start)
        inner = body_input(body, start.dtype, start.dims, "p")
        extra_in.append(inner)
        return inner

    count = index
    if counting.own_counter:
        count = carry(counting.own_counter)
        one = body.const(1, count.dtype)
        extra_out.append(body.op("Add", [count, one], ()))
    slices = [reader(body, count, carry, extra_out) for reader in readers]
    new, out = made.step(body, own, slices)
    stacked: list[Val] = []
    places: list[tuple[str, int]] = []
    for value in out:
        writer = drawn_writer(outer, value, time)
        if writer is None:
            places.append(("stacked", len(stacked)))
            stacked.append(value)
        else:
            places.append(("carried", len(carried)))
            extra_out.append(writer.write(body, carry(writer.start), count, value))
            writers.append(writer)
    go_on = counting.go_on(body, count, condition)
    early = world.chance(0.1) and _leave(body, [*new, *slices])
    if early:
        go_on = body.op("And", [go_on, early], ()) if world.chance(0.7) else early
        time = world.derive(world.size(time))
        world.feature("leaves early")
    outputs = _named_once(body, [go_on, *new, *extra_out, *stacked])
    graph = body.graph(world.name("body"), [index, condition, *own, *extra_in], outputs)
    tall = [value.of((time, *value.shape)) for value in stacked]
    results = outer.ops("Loop", [counting.trips, counting.condition, *carried], [*carried, *tall], body=graph)
    kept: list[Val] = []
    left = iter(writers)
    for kind, place in places:
        if kind == "stacked":
            kept.append(results[len(carried) + place])
        else:
            kept.append(next(left).finish(outer, results[place]))
    return [*results[: len(starts)], *kept]


def _leave(body: Scope, values: Sequence[Val]) -> Val | None:
    """Whether to go on, by the sum of something."""
    value = next((value for value in values if value.dtype in FLOATS and value.dims is not None), None)
    if value is None or not body.runs("Less", value.dtype):
        return None
    total = reduce(body, "ReduceSum", value, None) if value.rank else value
    return body.op("Less", [total, body.real(body.world.choose([0.0, 1.0, 3.0]), value.dtype)], (), "bool")


def _named_once(body: Scope, values: Sequence[Val]) -> list[Val]:
    """Body outputs; a Loop of onnxruntime takes inputs and repeated ones, outer ones it does not."""
    outputs: list[Val] = []
    own = {value.name for value in body.pool} | body.produced | {tensor.name for tensor in body.initializers}
    for given in values:
        value = given
        twice = value.name in [made.name for made in outputs] or value.name not in body.produced
        if value.name not in own or (twice and not body.world.chance(0.3)):
            value = body.op("Identity", [value], value.dims)
        elif twice:
            body.world.feature("Loop hands inputs on")
        outputs.append(value)
    return outputs
