"""Operators whose axis 0 is a batch axis already, in a fixed layout: the steps are merged into it.

``Conv(x [N, C, ...])`` -> Reshape to ``[steps * N, C, ...]``, Conv, Reshape back.
"""

from collections.abc import Sequence

from rewrites.batching.call import Call, Result
from rewrites.batching.folding import first_dim, folded, unfolded
from rewrites.batching.table import rule

__all__ = ["fold_batch", "fold_first"]

_BATCHES = {
    "Col2Im": (0,),
    "DeformConv": (0, 2, 4),
    "GridSample": (0, 1),
    "RotaryEmbedding": (0,),
    "TfIdfVectorizer": (0,),
}
"""The operands that have a batch axis in front, where it is not the first one alone."""


@rule("Conv", "ConvInteger", "ConvTranspose", "QLinearConv", "GroupNormalization", "InstanceNormalization", "BatchNormalization")
def fold_first(call: Call) -> Sequence[Result]:
    """Only the first operand has a batch axis; the others are weights."""
    call.same_weights(*range(1, len(call.operands)))
    if call.node.op_type == "GroupNormalization":
        call.needs_steps("ORT's GroupNormalization infers a dimension")
    return fold_batch(call)


@rule("AveragePool", "DepthToSpace", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LRN", "LpPool", "SpaceToDepth")
@rule("Col2Im", "DeformConv", "GridSample")
def fold_batch(call: Call) -> Sequence[Result]:
    """Operands with a batch axis are merged, copied for each step where they are the same; the others must be the same."""
    places = _BATCHES.get(call.node.op_type, (0,))
    call.same_weights(*(index for index in range(len(call.operands)) if index not in places))
    if call.rank(0) < 2:
        raise call.refuse("NO-BATCHING-RULE", f"rank {call.rank(0)}")
    values = [folded(call, index) if index in places else call.value(index) for index in range(len(call.operands))]
    return unfolded(call, call.build.like(call.node, values), first_dim(call, 0))
