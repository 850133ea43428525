"""Expand and Tile: sizes that are loop-invariant."""

from collections.abc import Sequence

from rewrites.batching.alignment import with_rank
from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule
from rewrites.graph.values import dim_of
from rewrites.ops.versions import DYNAMIC, ints_operand

__all__ = ["expand", "tile"]


@rule("Expand")
def expand(call: Call) -> Sequence[Result]:
    """``Expand(x, shape)`` -> ``Expand(x', shape)``, where ``x'`` has at least as many axes in one step as the shape.

    The shape is then counted from the end and never reaches the steps.
    """
    call.same_each_step(1)
    count = dim_of(call.operand(1).inner, 0)
    if not isinstance(count, int):
        raise call.refuse("RANK-UNKNOWN", "the rank of the result is not known")
    return call.like([with_rank(call, call.operand(0), max(count, call.rank(0))), call.value(1)])


@rule("Tile")
def tile(call: Call) -> Sequence[Result]:
    """``Tile(x, repeats)`` -> ``Tile(x', [1, *repeats])``."""
    call.same_each_step(1)
    b, repeats = call.build, ints_operand(call.node, 1)
    if repeats is DYNAMIC or repeats is None:
        return call.like([call.value(0), b.op("Concat", b.const([1]), call.operand(1).value, axis=0)])
    return call.like([call.value(0), b.const([1, *repeats])])
