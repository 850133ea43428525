"""OneHot, Compress and Trilu: batched data, everything else loop-invariant."""

from collections.abc import Sequence

from rewrites.batching.alignment import after_steps, axis_after_steps
from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule
from rewrites.ops.versions import axis_of

__all__ = ["compress", "one_hot", "triangle"]


@rule("OneHot")
def one_hot(call: Call) -> Sequence[Result]:
    """The new axis moves one position up; negative, it counts from the end of the result and stays."""
    call.same_each_step(1, 2)
    return call.like(call.values, axis=after_steps(axis_of(call.node, -1)))


@rule("Compress")
def compress(call: Call) -> Sequence[Result]:
    """The same condition in every step takes as much of each; without an axis, of all elements in a row."""
    if call.batched(1):
        raise call.refuse("DATA-DEPENDENT-SHAPE", "the shape of the result may differ between steps")
    if call.node.attributes.get_int("axis") is not None:
        return call.like(call.values, axis=axis_after_steps(call, 0))
    return call.like([call.build.op("Flatten", call.operand(0).value, axis=1), call.value(1)], axis=1)


@rule("Trilu")
@rule("Trilu", domain="com.microsoft")
def triangle(call: Call) -> Sequence[Result]:
    """The last two axes are what counts; others are batch axes already."""
    call.same_each_step(1)
    return call.like(call.values)
