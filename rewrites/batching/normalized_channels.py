"""BatchNormalization, InstanceNormalization, GroupNormalization and MeanVarianceNormalization.

The same scale and bias in every step: the steps are merged into the batch axis. Others in each step: the channels of all steps are
side by side, ``[N, steps * C, ...]`` with a scale for each; every channel is normalised by itself.

Works round ORT-GROUPNORM-OF-NOTHING.
"""

from collections.abc import Sequence

from rewrites.batching.alignment import expanded
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import product_of, shaped, step_dims, with_steps
from rewrites.batching.fold_into_batch import fold_batch
from rewrites.batching.folding import folded_at, unfolded_at, vector_of_all_steps
from rewrites.batching.function_body import by_its_function
from rewrites.batching.table import rule

__all__ = ["batch_normalization", "group_normalization", "instance_normalization", "mean_variance_normalization"]


@rule("BatchNormalization")
def batch_normalization(call: Call) -> Sequence[Result]:
    """In training the statistics are taken over the batch, and change with each step."""
    given = call.node.attributes
    if given.get_int("training_mode", 0) or len(call.node.outputs) > 1 or (call.opset < 9 and not given.get_int("spatial", 1)):
        raise call.refuse("TRAINING", "the statistics of the batch are wanted")
    return instance_normalization(call)


@rule("InstanceNormalization")
def instance_normalization(call: Call) -> Sequence[Result]:
    """Scale, bias and statistics, one for each channel, may differ between steps."""
    rank, parameters = call.rank(0), range(1, len(call.operands))
    if not any(map(call.batched, parameters)):
        return fold_batch(call)
    if rank < 2:
        raise call.refuse("NO-BATCHING-RULE", f"rank {rank}")
    values = [folded_at(call, 0, 1), *(vector_of_all_steps(call, index) for index in parameters)]
    (result,) = call.build.like(call.node, values)
    return [Result(unfolded_at(call, result, 1, step_dims(call, call.operand(0))[1], rank))]


@rule("GroupNormalization")
def group_normalization(call: Call) -> Sequence[Result]:
    """Groups of another step cannot stand beside, so with a scale of each step it is taken apart as its definition says."""
    call.needs_steps("ORT's GroupNormalization infers a dimension")
    return by_its_function(call) if call.batched(1) or call.batched(2) else fold_batch(call)


@rule("MeanVarianceNormalization", since=9)
def mean_variance_normalization(call: Call) -> Sequence[Result]:
    """Each channel of each step is a channel; where channels are normalised together, each step is one. ORT knows no other axes."""
    axes = sorted(call.node.attributes.get_ints("axes", (0, 2, 3)))
    if axes not in ([0, 2, 3], [0, 1, 2, 3]) or call.rank(0) != 4:
        raise call.refuse("NO-BATCHING-RULE", f"axes {axes} of {call.rank(0)}")
    dims = step_dims(call, call.operand(0))
    if len(axes) == 3:
        (result,) = call.build.like(call.node, [folded_at(call, 0, 1)])
        return [Result(unfolded_at(call, result, 1, dims[1], 4))]
    each = shaped(call, expanded(call, 0), [1, call.steps, product_of(call.build, dims[:3]), dims[3]])
    (result,) = call.build.like(call.node, [each], axes=[0, 2, 3])
    return [Result(with_steps(call, result, dims))]
