"""Attention operators: the steps are merged into the batch axis of queries, keys and values.

Masks are expanded to the larger batch if necessary.

Works around ORT-ATTENTION-OF-NOTHING.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.batching.alignment import stacked_operand
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import (
    Dim,
    first_dim,
    fold_operand,
    fold_steps,
    product_of,
    reshape_to,
    shape_tensor,
    step_dims,
    unfold_results,
)
from rewrites.batching.table import rule
from rewrites.graph.values import dim_of
from rewrites.ops.versions import gather, unsqueeze

__all__ = ["attention", "group_query_attention", "multi_head_attention", "rotary_embedding"]

_MASK_RANK = 4


@rule("Attention")
def attention(call: Call) -> Sequence[Result]:
    """Emit the node once, with the steps merged into its batch axis.

    Operands: query, key, value, mask, past key, past value, number of keys that are not padding.
    """
    return _fold_all(call, batches=(0, 1, 2, 4, 5, 6), mask=3)


@rule("MultiHeadAttention", domain="com.microsoft")
def multi_head_attention(call: Call) -> Sequence[Result]:
    """Emit the node once, with the steps merged into its batch axis.

    A node with a padding mask, or with operands for decoding (index 8 or higher), is refused.

    Operands: query, key, value, bias, padding mask, attention bias, past key, past value.
    """
    call.require_shared(3)
    if call.optional_operand(4) is not None or len(call.operands) > 8:
        raise call.refuse("NO-BATCHING-RULE", "there is a padding mask, or a cache")
    return _fold_all(call, batches=(0, 1, 2, 6, 7), mask=5)


@rule("GroupQueryAttention", domain="com.microsoft")
def group_query_attention(call: Call) -> Sequence[Result]:
    """Emit the node once, with the steps merged into its batch axis.

    Operands: query, key, value, past key, past value, lengths, total length, two rotary caches. The rotary caches must be
    loop-invariant, because all rows share them. A node with further operands is refused.
    """
    call.require_invariant(6)
    call.require_shared(7, 8)
    if any(call.optional_operand(index) is not None for index in range(9, len(call.operands))):
        raise call.refuse("NO-BATCHING-RULE", "it has positions, a bias or sinks")
    if any(call.optional_operand(index) is None for index in (1, 2)):
        raise call.refuse("NO-BATCHING-RULE", "query, key and value are packed into one")
    values = _with_folded_batches(call, (0, 1, 2, 3, 4, 5))
    return unfold_results(call, call.build.like(call.node, values), first_dim(call, 0))


def _with_folded_batches(call: Call, batches: Sequence[int]) -> list[ir.Value | None]:
    """Return the values of all operands, with the steps merged into axis 0 of some of them.

    ``batches``: the indices of the operands that have a batch axis. Their steps are merged. Other operands stay unchanged.
    """
    call.require_steps("onnxruntime's attention does not support an empty batch")
    values = call.values
    for index in batches:
        if call.optional_operand(index) is not None:
            values[index] = fold_operand(call, index)
    return values


def _fold_all(call: Call, batches: Sequence[int], mask: int) -> Sequence[Result]:
    """Emit the node once, with the steps merged into its batch axis.

    Args:
        call: The call.
        batches: The indices of the operands that have the batch as axis 0, without the mask.
        mask: The index of the mask. It broadcasts, so it may lack the batch axis.
    """
    values = _with_folded_batches(call, batches)
    batch = first_dim(call, 0)
    if call.optional_operand(mask) is not None:
        values[mask] = _folded_mask(call, mask, batch)
    return unfold_results(call, call.build.like(call.node, values), batch)


def _folded_mask(call: Call, index: int, batch: Dim) -> ir.Value:
    """Return operand ``index``, a mask, in a shape that fits the batch of all steps.

    A mask has up to 4 axes, and broadcasts to [batch, heads, queries, keys]. ``batch``: the size of the batch axis in one step.
    """
    mask, rank, b = call.operand(index), call.rank(index), call.build
    if not mask.batched and (rank < _MASK_RANK or dim_of(mask.inner, 0) == 1):
        return mask.value
    spread = unsqueeze(b, stacked_operand(call, index), range(1, 1 + _MASK_RANK - rank))
    dims = [*[1] * (_MASK_RANK - rank), *step_dims(call, mask)]
    if dims[0] != batch or isinstance(batch, ir.Value):
        spread = b.op("Expand", spread, shape_tensor(b, [batch, 1, 1, 1]))
    return fold_steps(call, spread, [batch, *dims[1:]])


@rule("RotaryEmbedding")
@rule("RotaryEmbedding", domain="com.microsoft")
def rotary_embedding(call: Call) -> Sequence[Result]:
    """Emit the node once, with the steps merged into its batch axis.

    The operator reads the cosines and sines of angles from two caches. If it has an operand for positions, the positions select
    rows of the caches. Otherwise, each row of the batch has its own row in the caches.

    If there are positions and a cache differs between steps, the rows are gathered first, and the emitted node gets no positions.
    """
    b, contrib = call.build, bool(call.node.domain)
    positions, caches = (1, (2, 3)) if contrib else (3, (1, 2))
    values = [*call.values, None, None, None, None][:4]
    values[0] = fold_operand(call, 0)
    position_ids = call.optional_operand(positions)
    cached = any(map(call.batched, caches))
    if call.node.attributes.get_int("is_packed_batching", 0):
        raise call.refuse("NO-BATCHING-RULE", "the rows of the batch are packed into one")
    if position_ids is None:
        for index in caches:
            values[index] = fold_operand(call, index)
    elif not cached:
        values[positions] = fold_operand(call, positions) if call.rank(positions) == 2 else position_ids.value
        if call.rank(positions) != 2 and position_ids.batched:
            raise call.refuse("NO-BATCHING-RULE", "the offset differs between steps")
    elif contrib or position_ids.batched:
        raise call.refuse("BATCHED-WEIGHTS", "both the cache and the positions differ between steps")
    else:
        dims = [*step_dims(call, position_ids), *step_dims(call, call.operand(caches[0]))[1:]]
        for index in caches:
            picked = gather(b, stacked_operand(call, index), position_ids.value, 1)
            values[index] = reshape_to(call, picked, [product_of(b, [call.steps, dims[0]]), *dims[1:]])
        values[positions] = None
    return unfold_results(call, b.like(call.node, values), first_dim(call, 0))
