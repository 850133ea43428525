"""Puts operands of different per-step ranks side by side: axes counted after the steps, broadcasting, copies for every step."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.batching.call import Call, Operand
from rewrites.builder import Builder
from rewrites.spelling import axis_of, gather, unsqueeze

__all__ = ["after_steps", "aligned", "axis_after_steps", "expanded", "lifted", "repeated"]

_NO_EXPAND_KERNEL = frozenset(
    {
        ir.DataType.BFLOAT16,
        ir.DataType.FLOAT8E4M3FN,
        ir.DataType.FLOAT8E4M3FNUZ,
        ir.DataType.FLOAT8E5M2,
        ir.DataType.FLOAT8E5M2FNUZ,
    }
)


def after_steps(axis: int) -> int:
    """Give the place of a per-step ``axis`` behind the extra axis 0; negative axes count from the end and stay."""
    return axis if axis < 0 else axis + 1


def axis_after_steps(call: Call, default: int, index: int = 0) -> int:
    """Give the ``axis`` attribute, one of operand ``index``, shifted behind the extra axis 0.

    It comes out non-negative where the rank is known: ORT gives wrong shapes for some negative axes where there are no steps.
    """
    operand = call.given(index)
    return after_steps(axis_of(call.node, default, None if operand is None else operand.rank))


def lifted(call: Call, operand: Operand, rank: int) -> ir.Value:
    """Give the value of ``operand`` such that it broadcasts as a per-step value of ``rank`` axes does."""
    if not operand.batched or operand.rank is None:
        return operand.value
    return unsqueeze(call.build, operand.value, range(1, 1 + rank - operand.rank))


def aligned(call: Call, indices: Sequence[int] | None = None) -> list[ir.Value | None]:
    """Give the values of operands (all, or those at ``indices``) such that they broadcast in every step as they do in one step.

    An operand that is the same in every step is never changed: its axes are counted from the end and never reach the steps. Ranks
    are needed only where a batched operand meets one that might have more axes in one step.
    """
    places = range(len(call.operands)) if indices is None else indices
    operands = {index: operand for index in places if (operand := call.given(index)) is not None}
    varying = {id(operand.inner) for operand in operands.values() if operand.batched}
    if len(varying) <= 1 and all(operand.batched or operand.rank == 0 for operand in operands.values()):
        return [call.value(index) for index in places]
    rank = max(call.rank(index) for index in operands)
    return [lifted(call, operands[index], rank) if index in operands else None for index in places]


def expanded(call: Call, index: int) -> ir.Value:
    """Give operand ``index`` with the steps as axis 0, copied for every step where it is the same in each."""
    return repeated(call.build, call.operand(index), call.steps)


def repeated(b: Builder, operand: Operand, steps: ir.Value) -> ir.Value:
    """Give ``operand`` with the steps as axis 0, copied for every step where it is the same in each."""
    if operand.batched:
        return operand.value
    if operand.inner.dtype in _NO_EXPAND_KERNEL:
        first = b.op("ConstantOfShape", steps, value=ir.tensor(np.zeros(1, dtype=np.int64)))
        return gather(b, unsqueeze(b, operand.value, [0]), first, axis=0)
    tail = b.op("Shape", operand.value) if operand.rank is None else b.const([1] * operand.rank) if operand.rank else None
    shape = steps if tail is None else b.op("Concat", steps, tail, axis=0)
    return b.op("Expand", operand.value, shape)
