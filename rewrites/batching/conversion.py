"""What passes its data through, or only changes its type: CastLike, and Dropout as it is in inference."""

from collections.abc import Sequence

from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule
from rewrites.ops.versions import dropout_is_identity

__all__ = ["cast_like", "dropout"]


@rule("CastLike")
def cast_like(call: Call) -> Sequence[Result]:
    """Only the type of the second operand counts: the result is batched where the first is."""
    return [Result(value, call.batched(0)) for value in call.build.like(call.node, call.values)]


@rule("Dropout")
def dropout(call: Call) -> Sequence[Result]:
    """``Dropout(x, ratio, false)`` -> ``Identity(x)``, or a Dropout of the data alone where the mask is wanted."""
    if not dropout_is_identity(call.node, call.opset):
        raise call.refuse("RANDOM", "training_mode may be true")
    x = call.operand(0)
    count = len(call.node.outputs)
    values = call.build.ops("Identity" if count == 1 else "Dropout", [x.value], count)
    return [Result(value, x.batched) for value in values]
