"""Operators whose axis 0 is a batch axis already, in a fixed layout: the steps are merged into it.

``MaxPool(x [N, C, ...])`` -> Reshape to ``[steps * N, C, ...]``, MaxPool, Reshape back. Several operands may have that batch axis;
those that are loop-invariant are copied for each. The others must be loop-invariant.

Works round ONNX-STFT-ONESIDED.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.batching.alignment import expanded
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import step_dims
from rewrites.batching.folding import first_dim, folded, folded_at, unfolded, unfolded_at
from rewrites.batching.table import rule
from rewrites.graph.dims import with_size
from rewrites.ops.versions import count_up, unsqueeze

__all__ = ["fold_batch", "frames", "pooled_regions", "regions", "reverse_sequence", "term_frequencies"]

_BATCHES = {"DeformConv": (0, 2, 4), "FusedConv": (0, 3), "GridSample": (0, 1), "TensorScatter": (0, 1, 2)}
"""The operands with a batch axis in front, where it is not the first alone."""


_STFT_RANK = 4
_ROI = 5


@rule("AveragePool", "DepthToSpace", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LRN", "LpPool", "SpaceToDepth")
@rule("Col2Im", "DeformConv", "GridSample", "TensorScatter")
@rule("FusedConv", "GridSample", domain="com.microsoft")
def fold_batch(call: Call) -> Sequence[Result]:
    """See the module."""
    places = _BATCHES.get(call.node.op_type, (0,))
    call.same_weights(*(index for index in range(len(call.operands)) if index not in places))
    if call.rank(0) < 2:
        raise call.refuse("NO-BATCHING-RULE", f"rank {call.rank(0)}")
    values = [folded(call, index) if index in places else call.value(index) for index in range(len(call.operands))]
    return unfolded(call, call.build.like(call.node, values), first_dim(call, 0))


@rule("STFT")
def frames(call: Call) -> Sequence[Result]:
    """The signals have a batch axis; frames and window must be loop-invariant.

    onnx and ORT infer a wrong size where ``onesided`` is left out, so it is written; what onnx made of its absence is not believed.
    """
    call.same_each_step(1, 3)
    call.same_weights(2)
    onesided, output = call.node.attributes.get_int("onesided", 1), call.node.outputs[0]
    if "onesided" not in call.node.attributes:
        output.shape = with_size(output.shape, 2, None)
    (result,) = call.build.like(call.node, [folded(call, 0), *call.values[1:]], onesided=onesided)
    result.shape = ir.Shape([None] * _STFT_RANK)
    return unfolded(call, [result], first_dim(call, 0))


@rule("TfIdfVectorizer")
def term_frequencies(call: Call) -> Sequence[Result]:
    """One document in each step is a batch of documents."""
    return call.like(call.values) if call.rank(0) == 1 else fold_batch(call)


@rule("ReverseSequence")
def reverse_sequence(call: Call) -> Sequence[Result]:
    """The batch axis, whichever it is, and the lengths take the steps."""
    axis, b = call.node.attributes.get_int("batch_axis", 1), call.build
    rank = call.rank(0)
    axis += rank if axis < 0 else 0
    data, lengths = folded_at(call, 0, axis), folded(call, 1)
    (result,) = b.like(call.node, [data, lengths])
    return [Result(unfolded_at(call, result, axis, step_dims(call, call.operand(0))[axis], rank))]


@rule("MaxRoiPool")
def pooled_regions(call: Call) -> Sequence[Result]:
    """``MaxRoiPool(x [N, ...], rois [K, 5])``: the first of the five is the number of the picture, a whole float."""
    b = call.build
    pictures, kind = first_dim(call, 0), call.operand(1).inner.dtype
    if kind is None:
        raise call.refuse("TYPE-UNKNOWN", f"the element type of {call.operand(1).inner.name!r} is not known")
    starts = b.op("Mul", count_up(b, call.steps), pictures if isinstance(pictures, ir.Value) else b.const([pictures]))
    shift = unsqueeze(b, b.op("Cast", starts, to=int(kind)), [1, 2])
    first = b.const(np.array([1, 0, 0, 0, 0], kind.numpy()))
    rois = b.op("Add", expanded(call, 1), b.op("Mul", shift, first))
    values = [folded(call, 0), b.op("Reshape", rois, b.const([-1, _ROI]))]
    return unfolded(call, b.like(call.node, values), first_dim(call, 1))


@rule("RoiAlign")
def regions(call: Call) -> Sequence[Result]:
    """``RoiAlign(x [N, ...], rois [K, 4], numbers [K])`` -> the regions of all steps, each with the number of its own picture."""
    b = call.build
    pictures = first_dim(call, 0)
    starts = b.op("Mul", count_up(b, call.steps), pictures if isinstance(pictures, ir.Value) else b.const([pictures]))
    numbers = b.op("Add", expanded(call, 2), unsqueeze(b, starts, [1]))
    values = [folded(call, 0), folded(call, 1), b.op("Reshape", numbers, b.const([-1]))]
    return unfolded(call, b.like(call.node, values), first_dim(call, 1))
