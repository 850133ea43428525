"""What models do with what a loop gives: take the last step, turn it round, move axes, sum up, put results together."""

from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import concat, gather, reduce, slice_, squeeze, transpose
from tests.campaigns.fuzz.values import FLOATS, INTS, Val

__all__ = ["worked_on"]


def worked_on(s: Scope, results: list[Val]) -> list[Val]:
    """The results, some of them through a node or two."""
    return [_after(s, value, results) if value.dims and s.world.chance(0.4) else value for value in results]


def _after(s: Scope, x: Val, results: list[Val]) -> Val:
    world = s.world
    how = world.choose(["last", "last slice", "turned", "transposed", "summed", "joined", "first", "function"])
    plain = x.dtype in FLOATS + INTS
    if how == "last" and plain and world.opset >= 11:
        return gather(s, x, s.int(-1), 0)
    if how == "first" and plain:
        return gather(s, x, s.int(0), 0)
    if how == "last slice":
        return squeeze(s, slice_(s, x, -1, 2**31 - 1, 0, length=1), 0)
    if how == "turned" and world.opset >= 10:
        return slice_(s, x, -1, -(2**31), 0, -1, length=x.shape[0])
    if how == "transposed" and x.rank > 1:
        return transpose(s, x, [1, 0, *range(2, x.rank)])
    if how == "summed" and x.dtype in FLOATS:
        return reduce(
            s, world.choose(["ReduceSum", "ReduceMean", "ReduceMax"]), x, [world.choose([0, x.rank - 1])], world.chance(0.4)
        )
    if how == "joined":
        alike = [value for value in results if value.dtype == x.dtype and value.dims == x.dims]
        return concat(s, [x, world.choose(alike)], world.between(0, x.rank - 1))
    if how == "function" and x.dtype in FLOATS:
        return s.op(world.choose(["Tanh", "Relu", "Sigmoid"]), [x], x.dims)
    return x
