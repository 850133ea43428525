"""Operators with a batch axis: the steps are merged into this axis, and the results are split again.

    MaxPool(x [N, C, ...])    ->    Reshape x to [steps * N, C, ...], then MaxPool, then Reshape to [steps, N, C, ...]
    LSTM(x [S, B, I])         ->    LSTM(x' [S, steps * B, I])

If an operand with a batch axis is loop-invariant, it is repeated for each step. Operands without a batch axis must be
loop-invariant. There is one exception: the weights of a convolution may differ between steps. The channels of all steps are then
concatenated, and each step has its own groups:

    Conv(x [N, C, ...], w [M, C / group, ...])
    ->    Conv(x' [N, steps * C, ...], w' [steps * M, C / group, ...], group = steps * group)

The number of steps must then be known, unless the data are loop-invariant and there is one group.

Works around ONNX-STFT-ONESIDED, ORT-RECURRENT-LAYOUT and ORT-RECURRENT-NO-ROWS.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from rewrites.batching.alignment import stacked_operand, with_unit_axes
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import (
    Dim,
    first_dim,
    fold_operand,
    fold_operand_at,
    fold_steps,
    product_of,
    static_steps,
    step_dims,
    unfold_result_at,
    unfold_results,
    vector_of_all_steps,
    with_folded_first_size,
)
from rewrites.batching.table import rule
from rewrites.graph.dims import with_size
from rewrites.graph.marks import ROWS_OF_STEPS
from rewrites.graph.values import static_dims
from rewrites.ops.versions import count_up, ints_operand, unsqueeze

__all__ = [
    "ROWS_OF_STEPS",
    "convolution",
    "fold_batch",
    "frames",
    "max_pool",
    "max_unpool",
    "pooled_regions",
    "recurrent",
    "regions",
    "reverse_sequence",
    "term_frequencies",
]


_BATCHES = {"DeformConv": (0, 2, 4), "FusedConv": (0, 3), "GridSample": (0, 1), "TensorScatter": (0, 1, 2)}
"""For each operator, the operands that have the batch as axis 0. By default, this is only the first operand."""


_STFT_RANK = 4
_ROI = 5


@rule("AveragePool", "DepthToSpace", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LRN", "LpPool", "SpaceToDepth")
@rule("Col2Im", "DeformConv", "GridSample", "TensorScatter")
@rule("FusedConv", "GridSample", domain="com.microsoft")
def fold_batch(call: Call) -> Sequence[Result]:
    """Emit the node with the steps merged into its batch axis. Other operands must be loop-invariant."""
    places = _BATCHES.get(call.node.op_type, (0,))
    call.require_shared(*(index for index in range(len(call.operands)) if index not in places))
    if call.rank(0) < 2:
        raise call.refuse("NO-BATCHING-RULE", f"rank {call.rank(0)}")
    values = [fold_operand(call, index) if index in places else call.value(index) for index in range(len(call.operands))]
    return unfold_results(call, call.build.like(call.node, values), first_dim(call, 0))


@rule("STFT")
def frames(call: Call) -> Sequence[Result]:
    """Emit an STFT with the steps merged into the batch axis of the signals (operand 0).

    If the node has no attribute ``onesided``, onnx and onnxruntime infer a wrong size. Therefore the emitted node always has this
    attribute, and the wrong size of the output is removed.
    """
    call.require_invariant(1, 3)
    call.require_shared(2)
    onesided, output = call.node.attributes.get_int("onesided", 1), call.node.outputs[0]
    if "onesided" not in call.node.attributes:
        output.shape = with_size(output.shape, 2, None)
    (result,) = call.build.like(call.node, [fold_operand(call, 0), *call.values[1:]], onesided=onesided)
    result.shape = ir.Shape([None] * _STFT_RANK)
    return unfold_results(call, [result], first_dim(call, 0))


@rule("TfIdfVectorizer")
def term_frequencies(call: Call) -> Sequence[Result]:
    """Merge the steps into the batch axis. If a step has only one axis, the steps become the batch axis."""
    return call.emit(call.values) if call.rank(0) == 1 else fold_batch(call)


@rule("ReverseSequence")
def reverse_sequence(call: Call) -> Sequence[Result]:
    """Emit the node with the steps merged into the batch axis of the data and of the lengths."""
    axis, b = call.node.attributes.get_int("batch_axis", 1), call.build
    rank = call.rank(0)
    axis += rank if axis < 0 else 0
    data, lengths = fold_operand_at(call, 0, axis), fold_operand(call, 1)
    (result,) = b.like(call.node, [data, lengths])
    return [Result(unfold_result_at(call, result, axis, step_dims(call, call.operand(0))[axis], rank))]


@rule("MaxRoiPool")
def pooled_regions(call: Call) -> Sequence[Result]:
    """Merge the steps of ``MaxRoiPool(x [N, ...], rois [K, 5])`` into N and K.

    ``rois[:, 0]`` holds the index of the image of each region. For step t, the rule adds t * N to these indices.
    """
    b = call.build
    pictures, kind = first_dim(call, 0), call.operand(1).inner.dtype
    if kind is None:
        raise call.refuse("TYPE-UNKNOWN", f"the element type of {call.operand(1).inner.name!r} is not known")
    starts = b.op("Mul", count_up(b, call.steps), pictures if isinstance(pictures, ir.Value) else b.const([pictures]))
    shift = unsqueeze(b, b.op("Cast", starts, to=int(kind)), [1, 2])
    first = b.const(np.array([1, 0, 0, 0, 0], kind.numpy()))
    rois = b.op("Add", stacked_operand(call, 1), b.op("Mul", shift, first))
    values = [fold_operand(call, 0), b.op("Reshape", rois, b.const([-1, _ROI]))]
    return unfold_results(call, b.like(call.node, values), first_dim(call, 1))


@rule("RoiAlign")
def regions(call: Call) -> Sequence[Result]:
    """Merge the steps of ``RoiAlign(x [N, ...], rois [K, 4], indices [K])`` into N and K.

    ``indices`` holds the index of the image of each region. For step t, the rule adds t * N to these indices.
    """
    b = call.build
    pictures = first_dim(call, 0)
    starts = b.op("Mul", count_up(b, call.steps), pictures if isinstance(pictures, ir.Value) else b.const([pictures]))
    numbers = b.op("Add", stacked_operand(call, 2), unsqueeze(b, starts, [1]))
    values = [fold_operand(call, 0), fold_operand(call, 1), b.op("Reshape", numbers, b.const([-1]))]
    return unfold_results(call, b.like(call.node, values), first_dim(call, 1))


_NARROW = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16})


@rule("Conv", "ConvInteger", "ConvTranspose")
def convolution(call: Call) -> Sequence[Result]:
    """Merge the steps into the batch axis, or into the channels if the weights differ between steps."""
    rank = call.rank(0)
    if rank < 3:
        raise call.refuse("NO-BATCHING-RULE", f"rank {rank}")
    if call.node.op_type == "ConvInteger":
        call.require_shared(2, 3)
    if call.batched(1):
        return [Result(_convolution_by_groups(call, rank))]
    if not call.batched(2):
        return fold_batch(call)
    if call.operand(2).inner.dtype in _NARROW:
        raise call.refuse("PRECISION", "adding the bias separately would round to 16 bits first")
    plain = replace(call, operands=call.operands[:2])
    product = fold_batch(plain)[0].value if call.batched(0) else call.build.like(call.node, plain.values)[0]
    return [Result(call.build.op("Add", product, with_unit_axes(call, call.operand(2), rank, 1)))]


def _convolution_by_groups(call: Call, rank: int) -> ir.Value:
    is_transposed = call.node.op_type == "ConvTranspose"
    group = call.node.attributes.get_int("group", 1)
    dims = step_dims(call, call.operand(1))
    channels = product_of(call.build, [dims[1], group]) if is_transposed else dims[0]
    rest = call.values[2:] if call.node.op_type == "ConvInteger" else [vector_of_all_steps(call, 2)]
    if not call.batched(0) and group == 1:
        weights = fold_operand_at(call, 1, 1) if is_transposed else fold_operand(call, 1)
        (result,) = call.build.like(call.node, [call.value(0), weights, *rest])
        return unfold_result_at(call, result, 1, channels, rank)
    steps = static_steps(call)
    if steps is None or steps == 0:
        raise call.refuse("BATCHED-WEIGHTS", "the weights differ between steps, and the number of steps is not known")
    (result,) = call.build.like(call.node, [fold_operand_at(call, 0, 1), fold_operand(call, 1), *rest], group=group * steps)
    return unfold_result_at(call, result, 1, channels, rank)


@rule("MaxPool")
def max_pool(call: Call) -> Sequence[Result]:
    """Emit the node with the steps merged into its batch axis.

    The indices that the emitted node returns count the elements of all steps, so the first index of each step is subtracted.
    """
    results = list(fold_batch(call))
    if len(results) > 1:
        size = product_of(call.build, step_dims(call, call.operand(0)))
        results[1] = Result(call.build.op("Sub", results[1].value, _offsets_of_steps(call, size)))
    return results


@rule("MaxUnpool")
def max_unpool(call: Call) -> Sequence[Result]:
    """Emit the node with the steps merged into its batch axis. The shape of a step's result must be known.

    The indices that the emitted node needs count the elements of all steps, so the first index of each step is added.
    """
    call.require_invariant(2)
    b, dims, sizes = call.build, static_dims(call.node.outputs[0]), ints_operand(call.node, 2)
    if dims is None and isinstance(sizes, tuple):
        dims = sizes
    if dims is None:
        raise call.refuse("SHAPE-UNKNOWN", f"the shape of {call.node.outputs[0].name!r} is not known")
    places = b.op("Add", stacked_operand(call, 1), _offsets_of_steps(call, int(np.prod(dims))))
    values: list[ir.Value | None] = [fold_operand(call, 0), fold_steps(call, places, step_dims(call, call.operand(1)))]
    if call.optional_operand(2) is not None:
        values.append(with_folded_first_size(call, call.operand(2).value, dims[0]))
    (result,) = b.like(call.node, values)
    result.shape = ir.Shape([None, *dims[1:]])
    return unfold_results(call, [result], first_dim(call, 0))


def _offsets_of_steps(call: Call, size: Dim) -> ir.Value:
    """Return the index of each step's first element in the flattened batch: 0, size, 2 * size, ..."""
    b = call.build
    starts = b.op("Mul", count_up(b, call.steps), size if isinstance(size, ir.Value) else b.const([size]))
    return unsqueeze(b, starts, range(1, 1 + call.rank(0)))


_WEIGHTS = (1, 2, 3, 7)


@rule("GRU", "LSTM", "RNN", since=7)
def recurrent(call: Call) -> Sequence[Result]:
    """Merge the steps into the batch axis of data, states and lengths. Refuse a node with ``layout=1``."""
    call.require_steps("onnxruntime crashes on an empty batch")
    call.require_shared(*_WEIGHTS)
    if call.node.attributes.get_int("layout", 0):
        raise call.refuse("NO-BATCHING-RULE", "the batch axis comes first, which onnxruntime does not support")
    values = call.values
    for index in (0, 5, 6):
        if call.optional_operand(index) is not None:
            values[index] = fold_operand_at(call, index, 1)
    if call.optional_operand(4) is not None:
        values[4] = fold_operand(call, 4)
    batch = step_dims(call, call.operand(0))[1]
    results = call.build.like(call.node, values)
    ROWS_OF_STEPS.put(call.build.nodes[-1], True)
    ranks = (4, 3, 3)
    return [Result(unfold_result_at(call, y, rank - 2, batch, rank)) for y, rank in zip(results, ranks, strict=False)]
