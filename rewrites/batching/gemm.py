"""Gemm and onnxruntime's FusedGemm: ``alpha * A @ B + beta * C`` on matrices.

There are three cases:

- B is loop-invariant: a MatMul and an Add replace the Gemm, because onnxruntime runs them fastest.
- B is loop-invariant, but MatMul and Add would round differently because of alpha, beta or 16-bit floats: one Gemm multiplies the
  rows of all steps.
- B differs between steps: a batched MatMul replaces the product, and Mul and Add apply alpha, beta and C.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.batching.alignment import with_rank
from rewrites.batching.call import Call, Operand, Result
from rewrites.batching.dims import Dim, fold_steps, shape_tensor, step_dims, unfold_steps
from rewrites.batching.products import product
from rewrites.batching.table import rule
from rewrites.graph.values import dim_of, rank_of
from rewrites.ops.versions import transpose

__all__ = ["gemm"]

_WIDE = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64})


@rule("Gemm")
@rule("FusedGemm", domain="com.microsoft")
def gemm(call: Call) -> Sequence[Result]:
    """Emit a MatMul and an Add, or one Gemm for the rows of all steps.

    The module docstring lists the cases.
    """
    for index in range(3 if call.optional_operand(2) is not None else 2):
        call.rank(index)
    alpha, beta = call.node.attributes.get_float("alpha", 1.0), call.node.attributes.get_float("beta", 1.0)
    c = call.optional_operand(2) if beta != 0 else None
    fused = call.node.op_type != "Gemm"
    one_matrix = call.batched(0) and not call.batched(1)
    wide = call.operand(0).inner.dtype in _WIDE
    if one_matrix and (fused or call.may_be_empty or not wide or alpha != 1.0 or (c is not None and beta != 1.0)):
        return [Result(_rows_of_all_steps(call, c))]
    if fused:
        raise call.refuse("NO-BATCHING-RULE", "the second matrix or the added one alone differs between steps")
    if not wide and (c is not None or alpha != 1.0):
        raise call.refuse("PRECISION", "splitting Gemm would round its product to 16 bits")
    return [Result(_matmul_and_add(call, alpha, beta, c))]


def _matmul_and_add(call: Call, alpha: float, beta: float, c: Operand | None) -> ir.Value:
    b = call.build
    left, right = _transposed_by_flag(call, 0, "transA"), _transposed_by_flag(call, 1, "transB")
    if left.batched or right.batched:
        pair = replace(call, operands=(left, right))
        result = product(pair, lambda matrix, other: b.op("MatMul", matrix, other), is_matmul=True)
    else:
        result = b.op("MatMul", left.value, right.value)
    if alpha != 1.0:
        result = b.op("Mul", result, _number(call, alpha))
    if c is None:
        return result
    added = with_rank(call, c, 2)
    return b.op("Add", result, added if beta == 1.0 else b.op("Mul", added, _number(call, beta)))


def _rows_of_all_steps(call: Call, c: Operand | None) -> ir.Value:
    """Emit one Gemm whose first matrix contains the rows of all steps, ``[steps * M, K]``.

    If C differs between rows or steps, C is expanded to the rows of all steps.
    """
    b = call.build
    left = _transposed_by_flag(call, 0, "transA")
    rows, inner = step_dims(call, left)
    a = fold_steps(call, left.value, [rows, inner])
    added = None if c is None else c.value if _same_in_all_rows(c) else _rows_for_all_steps(call, c, rows)
    if c is None and call.opset < since.GEMM_WITHOUT_C:
        added = _number(call, 0.0)
    (result,) = b.like(call.node, [a, call.value(1), added], transA=None)
    return unfold_steps(call, result, rows, 2)


def _same_in_all_rows(c: Operand) -> bool:
    return not c.batched and c.rank is not None and (c.rank < 2 or dim_of(c.inner, 0) == 1)


def _rows_for_all_steps(call: Call, c: Operand, rows: Dim) -> ir.Value:
    b = call.build
    columns = step_dims(call, c)[-1] if c.rank else 1
    spread = b.op("Expand", with_rank(call, c, 2), shape_tensor(b, [call.steps, rows, columns]))
    return fold_steps(call, spread, [rows, columns])


def _transposed_by_flag(call: Call, index: int, flag: str) -> Operand:
    """Return operand ``index``, transposed if the attribute ``flag`` ("transA", "transB") is set.

    The field ``inner`` of a transposed operand is a new value that belongs to no graph. It only holds the type and the transposed
    shape.
    """
    operand = call.operand(index)
    if not call.node.attributes.get_int(flag, 0):
        return operand
    order = [0, 2, 1] if operand.batched else [1, 0]
    shape = operand.inner.shape
    turned = ir.Shape([shape[1], shape[0]]) if shape is not None and rank_of(operand.inner) == 2 else None
    inner = ir.Value(name=operand.inner.name, type=operand.inner.type, shape=turned)
    return Operand(transpose(call.build, operand.value, order), operand.batched, inner)


def _number(call: Call, number: float) -> ir.Value:
    dtype = call.operand(0).inner.dtype
    assert dtype is not None
    return call.build.const(np.array(np.float32(number)).astype(dtype.numpy()))
