"""How a Loop knows when to end: a trip count, a condition, a counter of its own."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import cast, squeeze, step_of
from tests.campaigns.fuzz.values import Dim, Val

__all__ = ["Counting", "drawn_counting", "size_scalar"]


@dataclass(frozen=True)
class Counting:
    """Operands of the Loop, the start of its own counter where it has one, and what a body says to going on."""

    trips: Val | None
    condition: Val | None
    own_counter: Val | None
    go_on: Callable[[Scope, Val, Val], Val]


def size_scalar(s: Scope, time: Dim) -> Val:
    """A size as an int64 scalar."""
    if isinstance(time, int) and s.world.chance(0.7):
        return s.int(time)
    return squeeze(s, step_of(s, time), 0)


def drawn_counting(outer: Scope, time: Dim) -> Counting:
    world = outer.world
    counted = outer.runs("Less", "int64")
    kind = world.choose(["plain", "plain", "plain", "condition", "both", "huge"] if counted else ["plain"])
    own = outer.const(0, world.choose(["int64", "int32"]), "outer") if counted and world.chance(0.3) else None
    if kind == "plain":
        trips = outer.main.feed("int64", (), "trip", time) if world.chance(0.2) else size_scalar(outer, time)
        condition = world.choose([None, outer.const(np.array(True), "bool"), outer.const(np.array(True), "bool")])
        return Counting(trips, condition, own, _always(condition))
    limit = size_scalar(outer, time)
    first = outer.op("Less", [outer.int(0), limit], (), "bool")
    trips = {"condition": None, "both": limit, "huge": outer.int(2**63 - 1)}[kind]
    return Counting(trips, first, own, lambda body, count, _: _before(body, count, limit))


def _always(condition: Val | None) -> Callable[[Scope, Val, Val], Val]:
    def go_on(body: Scope, count: Val, given: Val) -> Val:
        how = body.world.choose(["given", "given", "constant", "outer", "bare"])
        if how == "outer" and condition is not None:
            return body.op("Identity", [condition], ())
        if how == "bare":
            return given
        if how == "constant":
            truth = body.const(np.array(True), "bool")
            return body.op("Identity", [truth], ()) if body.world.chance(0.5) else truth
        return body.op("Identity", [given], ())

    return go_on


def _before(body: Scope, count: Val, limit: Val) -> Val:
    nxt = body.op("Add", [count, body.const(1, count.dtype)], ())
    return body.op("Less", [nxt, cast(body, limit, count.dtype)], (), "bool")
