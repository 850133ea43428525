"""Operators whose axis 0 is a batch axis already, in a fixed layout: the steps are merged into it.

``Conv(x [N, C, ...])`` -> Reshape to ``[steps * N, C, ...]``, Conv, Reshape back.
"""

from collections.abc import Sequence

from rewrites.batching.call import Call, Result
from rewrites.batching.dims import fold_steps, step_dims, unfold_steps
from rewrites.batching.table import rule

__all__ = ["batch_normalization", "fold_batch", "fold_grid_sample", "max_pool"]


@rule(
    *("AveragePool", "Conv", "ConvInteger", "ConvTranspose", "DepthToSpace", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"),
    *("GroupNormalization", "InstanceNormalization", "LRN", "LpPool", "QLinearConv", "SpaceToDepth"),
)
@rule("FusedConv", domain="com.microsoft")
def fold_batch(call: Call) -> Sequence[Result]:
    """Only the first operand may differ between steps."""
    call.same_each_step(*range(1, len(call.operands)))
    if call.node.op_type == "FusedConv" and call.given(3) is not None:
        raise call.refuse("NO-BATCHING-RULE", "a tensor with a batch axis of its own is added")
    if call.node.op_type == "GroupNormalization":
        call.needs_steps("ORT's GroupNormalization infers a dimension")
    return _folded(call, 1)


@rule("MaxPool")
def max_pool(call: Call) -> Sequence[Result]:
    """Indices, where wanted, are counted through the whole tensor, so they would come out wrong."""
    if len(call.node.outputs) > 1:
        raise call.refuse("NO-BATCHING-RULE", "the indices are wanted")
    return _folded(call, 1)


@rule("BatchNormalization")
def batch_normalization(call: Call) -> Sequence[Result]:
    """In training the statistics are taken over the batch, which must then stay as it is."""
    if call.node.attributes.get_int("training_mode", 0) or len(call.node.outputs) > 1:
        raise call.refuse("TRAINING", "the statistics of the batch are wanted")
    return fold_batch(call)


@rule("GridSample")
def fold_grid_sample(call: Call) -> Sequence[Result]:
    """Data and grid share the batch axis."""
    if not (call.batched(0) and call.batched(1)):
        raise call.refuse("NO-BATCHING-RULE", "only one of data and grid differs between steps")
    return _folded(call, 2)


def _folded(call: Call, count: int) -> list[Result]:
    rank = call.rank(0)
    if rank < 2:
        raise call.refuse("NO-BATCHING-RULE", f"rank {rank}")
    dims = [step_dims(call, call.operand(index)) for index in range(count) if call.rank(index)]
    folded = [fold_steps(call, call.operand(index).value, dims[index]) for index in range(count)]
    (result,) = call.build.like(call.node, [*folded, *call.values[count:]])
    return [Result(unfold_steps(call, result, dims[0][0], rank))]
