"""Running sums, products, largest values, linear recurrences, counters, delay lines, passenger states."""

from collections.abc import Sequence

import numpy as np

from tests.campaigns.fuzz.recurrence import Recurrence, State, Stream
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import cast, concat, elementwise, gather, matmul, reduce, slice_, transpose, unsqueeze
from tests.campaigns.fuzz.values import FLOATS, INTS, Dim, Val
from tests.campaigns.fuzz.world import World

__all__ = ["counter", "delay_line", "linear_recurrence", "mapped", "outer_product_state", "passengers", "running"]

Vals = Sequence[Val]


def _element(world: World, lead: tuple[Dim, ...]) -> tuple[Dim, ...]:
    return (*lead, *(world.width() for _ in range(world.between(0 if lead else 1, 2))))


def running(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """A running sum, product, largest or smallest value."""
    dtype = world.choose([world.real, world.real, world.real, *INTS])
    ops = ["Add", "Add", "Mul", "Max", "Min"] if dtype in FLOATS or world.opset >= 12 else ["Add", "Mul"]
    op, dims = world.choose(ops), _element(world, lead)
    start: str | float = world.choose(["source", "zeros", 1.0 if op == "Mul" else "zeros"])

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        x = slices[0]
        if s.world.chance(0.3) and dtype in FLOATS:
            x = elementwise(s, s.world.choose(["Tanh", "Exp", "Abs"]), x)
        new = elementwise(s, op, *([states[0], x] if s.world.chance(0.6) else [x, states[0]]))
        out = new if s.world.chance(0.7) else states[0]
        if out is states[0]:
            out = s.op("Identity", [out], out.dims)
        return [new], [out]

    narrower = dims if world.chance(0.8) or not dims else (*dims[:-1], 1)
    return Recurrence(f"running {op}", [State(dtype, dims, start)], [Stream(dtype, narrower)], step)


def linear_recurrence(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """``h = a * h + b``, with the factors from a stream, a constant, or a product of matrices."""
    width = world.width()
    dims = (*lead, width)
    kind = world.choose(["stream", "constant", "matrix", "sigmoid"])
    streams = [Stream(world.real, dims)] + ([Stream(world.real, dims)] if kind in ("stream", "sigmoid") else [])

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        h, b = states[0], slices[0]
        if kind == "matrix":
            decayed = matmul(s, h, s.weight(width, width, dtype=h.dtype, scale=0.4))
        elif kind == "constant":
            decayed = elementwise(s, "Mul", h, s.weight(*s.world.choose([(), (1,), (width,)]), dtype=h.dtype))
        else:
            a = elementwise(s, "Sigmoid", slices[1]) if kind == "sigmoid" else slices[1]
            decayed = elementwise(s, "Mul", a, h)
        new = elementwise(s, s.world.choose(["Add", "Add", "Sub"]), decayed, b)
        return [new], [new]

    return Recurrence(f"linear recurrence by {kind}", [State(world.real, dims)], streams, step)


def outer_product_state(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """Linear attention: ``S = d * S + k v^T``, read by a query."""
    keys, values = world.width(), world.width()
    streams = [Stream(world.real, (*lead, keys)), Stream(world.real, (*lead, values)), Stream(world.real, (*lead, keys))]

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        k, v, q = slices
        product = elementwise(s, "Mul", unsqueeze(s, k, k.rank), unsqueeze(s, v, v.rank - 1))
        old = elementwise(s, "Mul", states[0], s.real(0.9, k.dtype)) if s.world.chance(0.5) else states[0]
        new = elementwise(s, "Add", old, product)
        read = reduce(s, "ReduceSum", elementwise(s, "Mul", unsqueeze(s, q, q.rank), new), [-2])
        return [new], [read]

    return Recurrence("outer product state", [State(world.real, (*lead, keys, values))], streams, step)


def counter(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """A state that counts steps, and a table, a mask or a number made of it."""
    dtype, width = world.choose(["int64", "int64", "int32", world.real]), world.width()
    by = world.choose([1, 1, 2, -1])
    one_element = world.chance(0.4)

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        n, x = states[0], slices[0]
        nxt = elementwise(s, "Add", n, s.const(np.full((1,) if s.world.chance(0.3) and one_element else (), by), dtype))
        how = s.world.choose(["table", "mask", "scale", "bare"])
        if how == "table" and dtype in INTS and by == 1:
            row = gather(s, s.weight(8, width, dtype=x.dtype), n)
            y = elementwise(s, "Add", x, row)
        elif how == "mask" and s.runs("Where", x.dtype) and s.runs("Less", dtype):
            mask = elementwise(s, "Less", n, s.const(2, dtype), dtype="bool")
            y = elementwise(s, "Where", mask, x, s.real(0.5, x.dtype), dtype=x.dtype)
        elif how == "scale":
            y = elementwise(s, "Mul", x, cast(s, n, x.dtype))
        else:
            return [nxt], [s.op("Identity", [n], n.dims), elementwise(s, "Tanh", x)]
        return [nxt], [y]

    start = world.choose([0.0, 0.0, 1.0, "source"]) if by == 1 and dtype == world.real else 0.0
    return Recurrence("counter", [State(dtype, (1,) if one_element else (), start)], [Stream(world.real, (*lead, width))], step)


def delay_line(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """A state that is what a stream was, one or several steps ago; any type."""
    dtype = world.choose([world.real, "int64", "bool", "string", *world.movable()])
    width = world.width()
    taps = world.choose([0, 0, 2, 3])
    dims = (*lead, width)

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        x = slices[0]
        if not taps:
            return [s.op("Identity", [x], x.dims)], [s.op("Identity", [states[0]], states[0].dims)]
        at = len(lead)
        line = concat(s, [slice_(s, states[0], 1, 2**31 - 1, at), unsqueeze(s, x, at)], at)
        line = line.of((*lead, taps, width))
        if dtype in FLOATS and s.world.chance(0.6):
            return [line], [reduce(s, "ReduceSum", line, [at])]
        return [line], [s.op("Identity", [line], line.dims)]

    state = State(
        dtype, (*lead, taps, width) if taps else dims, world.choose(["source", "zeros"]) if dtype in FLOATS + INTS else "source"
    )
    return Recurrence("delay line", [state], [Stream(dtype, dims)], step)


def passengers(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """States that pass through, states that only follow another, states that swap."""
    dtype, dims = world.choose([world.real, "int64", "bool", "string"]), _element(world, lead)
    kind = world.choose(["pass", "swap", "rotate", "transposed"])
    count = 3 if kind == "rotate" else 2
    if kind == "transposed":
        dims = (*lead, 2, 2)

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        order = list(states) if kind == "pass" else [*states[1:], states[0]]
        if kind == "transposed":
            perm = [*range(len(lead)), len(lead) + 1, len(lead)]
            moved = [transpose(s, state, perm) for state in order]
        else:
            moved = [s.op("Identity", [state], state.dims) for state in order]
        out = [s.op("Identity", [states[0]], dims)]
        if dtype in FLOATS:
            out.append(elementwise(s, "Add", slices[0], states[-1]))
        return moved, out

    return Recurrence(f"passengers {kind}", [State(dtype, dims) for _ in range(count)], [Stream(dtype, dims)], step)


def mapped(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """No state that matters: pairwise distances, a product, a softmax of each slice."""
    width = world.width()
    keep = world.chance(0.4)

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        x = slices[0]
        how = s.world.choose(["distance", "product", "softmax", "cast", "inner"])
        if how == "distance":
            others = s.weight(3, width, dtype=x.dtype)
            apart = elementwise(s, "Sub", others, x if x.rank < 2 else unsqueeze(s, x, x.rank - 1))
            y = reduce(s, s.world.choose(["ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceMax"]), apart, [-1])
        elif how == "product":
            y = matmul(s, x, s.weight(width, s.world.width(), dtype=x.dtype))
        elif how == "softmax":
            y = s.op(s.world.choose(["Softmax", "LogSoftmax"]), [x], x.dims, axis=x.rank - 1)
        elif how == "cast":
            y = cast(s, x, s.world.choose(["float32", "float64", "float16"]))
        else:
            y = elementwise(s, "Mul", elementwise(s, "Tanh", x), s.weight(*s.world.choose([(), (1,), (width,)]), dtype=x.dtype))
        return [s.op("Identity", [state], state.dims) for state in states], [y]

    states = [State(world.real, (width,))] if keep else []
    return Recurrence("mapped", states, [Stream(world.real, (*lead, width))], step)
