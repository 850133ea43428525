"""Conv, ConvInteger and ConvTranspose.

The same weights in every step: the steps are merged into the batch axis. Weights of each step: its channels, and its group, stand
beside those of the other steps, ``Conv(x [N, steps * C, ...], w [steps * M, C / group, ...], group = steps * group)``. That takes a
known number of steps, unless the data are loop-invariant.
"""

from collections.abc import Sequence
from dataclasses import replace

import onnx_ir as ir

from rewrites.batching.alignment import unit_axes
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import product_of, step_dims
from rewrites.batching.fold_into_batch import fold_batch
from rewrites.batching.folding import folded, folded_at, static_steps, unfolded_at, vector_of_all_steps
from rewrites.batching.table import rule

__all__ = ["convolution"]

_NARROW = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16})


@rule("Conv", "ConvInteger", "ConvTranspose")
def convolution(call: Call) -> Sequence[Result]:
    """Choose the form: see the module."""
    rank = call.rank(0)
    if rank < 3:
        raise call.refuse("NO-BATCHING-RULE", f"rank {rank}")
    if call.node.op_type == "ConvInteger":
        call.same_weights(2, 3)
    if call.batched(1):
        return [Result(_by_groups(call, rank))]
    if not call.batched(2):
        return fold_batch(call)
    if call.operand(2).inner.dtype in _NARROW:
        raise call.refuse("PRECISION", "adding the bias outside would round to 16 bits first")
    plain = replace(call, operands=call.operands[:2])
    product = fold_batch(plain)[0].value if call.batched(0) else call.build.like(call.node, plain.values)[0]
    return [Result(call.build.op("Add", product, unit_axes(call, call.operand(2), rank, 1)))]


def _by_groups(call: Call, rank: int) -> ir.Value:
    turned = call.node.op_type == "ConvTranspose"
    group = call.node.attributes.get_int("group", 1)
    dims = step_dims(call, call.operand(1))
    channels = product_of(call.build, [dims[1], group]) if turned else dims[0]
    rest = call.values[2:] if call.node.op_type == "ConvInteger" else [vector_of_all_steps(call, 2)]
    if not call.batched(0) and group == 1:
        weights = folded_at(call, 1, 1) if turned else folded(call, 1)
        (result,) = call.build.like(call.node, [call.value(0), weights, *rest])
        return unfolded_at(call, result, 1, channels, rank)
    steps = static_steps(call)
    if steps is None or steps == 0:
        raise call.refuse("BATCHED-WEIGHTS", "the weights differ between steps, and how many steps there are is not known")
    (result,) = call.build.like(call.node, [folded_at(call, 0, 1), folded(call, 1), *rest], group=group * steps)
    return unfolded_at(call, result, 1, channels, rank)
