"""Attention over an outer memory, decoding by what scored best, embeddings, normalised cells."""

from collections.abc import Sequence

import numpy as np

from tests.campaigns.fuzz.recurrence import Recurrence, State, Stream
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import cast, concat, elementwise, gather, linear, matmul, reduce, transpose
from tests.campaigns.fuzz.values import Dim, Val
from tests.campaigns.fuzz.world import World

__all__ = ["attention", "decoding", "embedding", "normalised_cell", "word_mask"]

Vals = Sequence[Val]


def attention(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    width = world.width()
    dims = (*lead, width)

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        h = states[0]
        memory = s.main.source(h.dtype, (s.world.choose([3, "T"]), width))
        keys = linear(s, memory, width) if s.world.chance(0.5) else memory
        scores = matmul(s, h, transpose(s, keys, [1, 0]))
        weights = s.op("Softmax", [scores], scores.dims, axis=scores.rank - 1)
        context = matmul(s, weights, memory)
        new = elementwise(s, "Tanh", linear(s, concat(s, [slices[0], context], -1), width))
        return [new], [new, weights] if s.world.chance(0.3) else [new]

    return Recurrence("attention", [State(world.real, dims)], [Stream(world.real, dims)], step)


def decoding(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """A token goes round: its row of a table is added, and the best score is the next token."""
    width = 4
    lead = lead[:1]

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        token, h = states
        row = gather(s, s.weight(width, width, dtype=h.dtype), token)
        new = elementwise(s, "Tanh", elementwise(s, "Add", elementwise(s, "Add", linear(s, h, width), row), slices[0]))
        best = s.op("ArgMax", [new], new.shape[:-1], "int64", axis=new.rank - 1, keepdims=0)
        return [best, new], [s.op("Identity", [best], best.dims)]

    states = [State("int64", lead, 0.0), State(world.real, (*lead, width))]
    return Recurrence("decoding", states, [Stream(world.real, (*lead, width))], step)


def embedding(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """Tokens from a stream, looked up in a table."""
    width = world.width()
    lead = lead[:1]

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        row = gather(s, s.weight(2, width, dtype=states[0].dtype), slices[0])
        new = elementwise(s, "Tanh", elementwise(s, "Add", row, linear(s, states[0], width)))
        return [new], [new]

    return Recurrence("embedding", [State(world.real, (*lead, width))], [Stream("int64", lead, "index")], step)


def normalised_cell(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """A cell with its pre-activation normalised, or its state clipped or scaled by its size: no native node."""
    width = world.width()
    dims = (*lead, width)
    kind = world.choose(["mean", "clip", "norm", "layer"])

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        a = elementwise(s, "Add", linear(s, slices[0], width), linear(s, states[0], width))
        if kind == "mean":
            a = elementwise(s, "Sub", a, reduce(s, "ReduceMean", a, [-1], True))
        elif kind == "clip" and s.world.opset >= 11:
            a = s.op("Clip", [a, s.const(-0.5, a.dtype), s.const(0.5, a.dtype)], a.dims)
        elif kind == "norm":
            a = elementwise(s, "Div", a, elementwise(s, "Add", reduce(s, "ReduceL2", a, [-1], True), s.real(1.0, a.dtype)))
        elif s.runs("LayerNormalization", a.dtype):
            a = s.op("LayerNormalization", [a, s.weight(width, dtype=a.dtype)], a.dims, axis=-1, epsilon=0.1)
        new = elementwise(s, "Tanh", a)
        return [new], [new]

    return Recurrence(f"cell with {kind}", [State(world.real, dims)], [Stream(world.real, dims)], step)


def word_mask(world: World, lead: tuple[Dim, ...]) -> Recurrence:
    """Words tell which rows count."""
    dims = (*lead[:1], world.width())

    def step(s: Scope, states: Vals, slices: Vals) -> tuple[list[Val], list[Val]]:
        if s.runs("Equal", "string"):
            same = elementwise(s, "Equal", slices[0], s.const(np.array("a", dtype=object), "string", "outer"), dtype="bool")
            return [elementwise(s, "Add", states[0], cast(s, same, states[0].dtype))], [
                s.op("Identity", [slices[0]], slices[0].dims)
            ]
        return [elementwise(s, "Add", states[0], s.real(1.0, states[0].dtype))], [s.op("Identity", [slices[0]], slices[0].dims)]

    return Recurrence("words", [State(world.real, dims, "zeros")], [Stream("string", dims)], step)
