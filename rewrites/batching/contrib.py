"""Operators of the com.microsoft domain that onnxruntime's optimiser and quantiser create.

If such an operator resembles a standard operator, its rule is in the file of the standard operator.

Works around ORT-ATTENTION-OF-NOTHING.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import onnx_ir as ir

from rewrites.batching.alignment import aligned_operands, axis_after_steps, stacked_operand
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import first_dim, fold_operand, unfold_results
from rewrites.batching.fold_into_batch import fold_batch
from rewrites.batching.products import product
from rewrites.batching.table import rule
from rewrites.graph.values import dim_of

__all__ = [
    "dequantized_product",
    "embedding",
    "packed_attention",
    "quantized_attention",
    "quantized_broadcasting",
    "quantized_concatenation",
    "quantized_unary",
]

_MS = "com.microsoft"
_BROADCAST = {"QLinearWhere": (0, 1, 4)}


@rule("Inverse", "MatMulNBits", "QLinearLeakyRelu", "QLinearSigmoid", domain=_MS)
def quantized_unary(call: Call) -> Sequence[Result]:
    """Emit the node on the data of all steps. The operator accepts any number of leading axes.

    All operands except the data must be loop-invariant.
    """
    call.require_shared(*range(1, len(call.operands)))
    return call.emit(call.values)


@rule("QLinearAdd", "QLinearMul", "QLinearWhere", domain=_MS)
def quantized_broadcasting(call: Call) -> Sequence[Result]:
    """Emit the node with its data aligned so that each step broadcasts as before.

    The data are a and b of ``QLinearAdd(a, sa, za, b, sb, zb, s, z)``, or c, x and y of ``QLinearWhere(c, x, sx, zx, y, …)``. All
    other operands must be loop-invariant.
    """
    broadcast, values = _BROADCAST.get(call.node.op_type, (0, 3)), call.values
    call.require_shared(*(index for index in range(len(call.operands)) if index not in broadcast))
    for index, value in zip(broadcast, aligned_operands(call, broadcast), strict=True):
        values[index] = value
    return call.emit(values)


@rule("QLinearSoftmax", domain=_MS)
def quantized_softmax(call: Call) -> Sequence[Result]:
    """Emit the node with its attribute ``axis`` shifted past axis 0 (the steps).

    Before opset 13, the operator normalises all axes from ``axis`` on together. The shift is correct there too, because the steps
    come before ``axis``.
    """
    call.require_shared(*range(1, len(call.operands)))
    return call.emit(call.values, axis=axis_after_steps(call, -1))


@rule("QLinearConcat", domain=_MS)
def quantized_concatenation(call: Call) -> Sequence[Result]:
    """Emit ``QLinearConcat(s, z, x0, s0, z0, x1, ...)`` with its axis shifted past axis 0 (the steps).

    If some of the data x0, x1, … are loop-invariant, they are repeated for each step.
    """
    parts = range(2, len(call.operands), 3)
    call.require_shared(*(index for index in range(len(call.operands)) if index not in parts))
    values = [stacked_operand(call, index) if index in parts else value for index, value in enumerate(call.values)]
    return call.emit(values, axis=axis_after_steps(call, 0, 2))


@rule("NhwcMaxPool", "QLinearAveragePool", "QLinearGlobalAveragePool", domain=_MS)
def quantized_pool(call: Call) -> Sequence[Result]:
    """Emit the node once, with the steps merged into its batch axis."""
    return fold_batch(call)


@rule("MatMulIntegerToFloat", domain=_MS)
def dequantized_product(call: Call) -> Sequence[Result]:
    """Emit one MatMulIntegerToFloat for all steps.

    Only the first matrix may be batched. The second matrix, scales, zero points and bias must be loop-invariant.
    """
    call.require_shared(*range(2, len(call.operands)))
    rest = call.values[2:]

    def emit(left: ir.Value, right: ir.Value) -> ir.Value:
        return call.build.like(call.node, [left, right, *rest])[0]

    if call.batched(1):
        raise call.refuse("BATCHED-WEIGHTS", "input 1, the second matrix, differs between steps")
    return [Result(product(replace(call, operands=call.operands[:2]), emit, is_matmul=False))]


@rule("Attention", domain=_MS)
def packed_attention(call: Call) -> Sequence[Result]:
    """Emit the node once, with the steps merged into its batch axis. Refuse a node with a mask or a past.

    Operands: data, packed weights, bias.
    """
    call.require_shared(1, 2)
    return _plain_attention(call, range(3, len(call.operands)))


def _plain_attention(call: Call, absent: Iterable[int]) -> Sequence[Result]:
    """Emit the node once, with the steps merged into its batch axis.

    Refuse a node that has a second output or one of the operands ``absent`` (indices of masks and pasts).
    """
    if any(call.optional_operand(index) is not None for index in absent) or len(call.node.outputs) > 1:
        raise call.refuse("NO-BATCHING-RULE", "it has a mask or a past")
    call.require_steps("onnxruntime's attention does not support an empty batch")
    return fold_batch(call)


@rule("QAttention", domain=_MS)
def quantized_attention(call: Call) -> Sequence[Result]:
    """Emit the node once, with the steps merged into its batch axis. Refuse a node with a mask or a past.

    Operands: data, packed weights, bias, scales, zero points.
    """
    call.require_shared(*range(1, len(call.operands)))
    return _plain_attention(call, (5, 8))


@rule("EmbedLayerNormalization", domain=_MS)
def embedding(call: Call) -> Sequence[Result]:
    """Emit the node once, with the steps merged into the batch axis of word ids, segment ids and mask.

    The tables must be loop-invariant.
    """
    call.require_shared(*range(2, 7))
    values = call.values
    for index in (0, 1, 7):
        if call.optional_operand(index) is not None:
            values[index] = fold_operand(call, index)
    places = call.optional_operand(8)
    if places is not None:
        rows, batch = dim_of(places.inner, 0), dim_of(call.operand(0).inner, 0)
        if places.batched or rows != 1:
            if rows is None or rows != batch:
                raise call.refuse("NO-BATCHING-RULE", "it is not known if each row has its own positions")
            values[8] = fold_operand(call, 8)
    return unfold_results(call, call.build.like(call.node, values), first_dim(call, 0))
