"""Products of matrices, reductions, and what works along an axis."""

import numpy as np

from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import gather, linear, matmul, reduce
from tests.campaigns.fuzz.values import FLOATS, INTS, Val

__all__ = ["along_an_axis", "arg_max", "einsum", "normalised", "product", "product_of_two", "reduction", "top"]

REDUCTIONS = (
    "ReduceSum",
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceSumSquare",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSumExp",
    "ReduceProd",
)


def product(s: Scope) -> Val | None:
    x = s.pick(
        lambda v: (
            v.dtype in FLOATS and v.rank > 0 and isinstance(v.shape[-1], int) and v.shape[-1] > 0 and s.runs("MatMul", v.dtype)
        )
    )
    return x and linear(s, x, s.world.width(), s.world.chance(0.5))


def product_of_two(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.dtype in FLOATS and v.rank > 1)
    y = x and s.pick(
        lambda v: v.dtype == x.dtype and v.rank in (2, x.rank) and v.shape[-2] == x.shape[-1] and v.shape[:-2] in ((), x.shape[:-2])
    )
    return matmul(s, x, y) if x and y else None


def einsum(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank == 2 and v.dtype in FLOATS and s.runs("Einsum", v.dtype))
    if x is None:
        return None
    equation, dims = s.world.choose(
        [("ij->ji", x.shape[::-1]), ("ij->i", x.shape[:1]), ("ij,ij->j", x.shape[1:]), ("ij,kj->ik", (x.shape[0], x.shape[0]))]
    )
    return s.op("Einsum", [x] * (2 if "," in equation else 1), dims, equation=equation)


def reduction(s: Scope) -> Val | None:
    op = s.world.choose(REDUCTIONS)
    x = s.pick(lambda v: v.rank > 0 and v.dtype in FLOATS + INTS and s.runs(op, v.dtype))
    if x is None:
        return None
    if op in ("ReduceProd", "ReduceLogSumExp", "ReduceSumSquare") and x.dtype in FLOATS:
        x = s.op("Tanh", [x], x.dims)
    axis = s.world.between(0, x.rank - 1)
    axes = s.world.choose([None, [axis], [axis - x.rank], [axis], sorted({0, x.rank - 1})])
    return reduce(s, op, x, axes, s.world.chance(0.4))


def along_an_axis(s: Scope) -> Val | None:
    op = s.world.choose(["Softmax", "Softmax", "LogSoftmax", "CumSum", "Hardmax", "CumProd"])
    x = s.pick(lambda v: v.rank > 0 and v.dtype in FLOATS + INTS and s.runs(op, v.dtype))
    if x is None:
        return None
    axis = s.world.between(0, x.rank - 1)
    axis -= x.rank if s.world.opset >= 11 and s.world.chance(0.5) else 0
    if op in ("CumSum", "CumProd"):
        return s.op(op, [x, s.int(axis)], x.dims, exclusive=s.world.between(0, 1), reverse=s.world.between(0, 1))
    return s.op(op, [x], x.dims, **({} if s.world.chance(0.3) else {"axis": axis}))


def normalised(s: Scope) -> Val | None:
    op = s.world.choose(["LayerNormalization", "LpNormalization", "MeanVarianceNormalization", "RMSNormalization"])
    x = s.pick(lambda v: v.rank > 1 and isinstance(v.shape[-1], int) and v.dtype in FLOATS and s.runs(op, v.dtype))
    if x is None:
        return None
    if op == "LpNormalization":
        return s.op(op, [x], x.dims, axis=-1, p=s.world.choose([1, 2]))
    if op == "MeanVarianceNormalization":
        return s.op(op, [x], x.dims, axes=[x.rank - 1])
    scale = s.const(s.world.array(x.dtype, (int(x.shape[-1]),)), x.dtype)
    return s.op(op, [x, scale], x.dims, axis=-1, epsilon=0.1)


def arg_max(s: Scope) -> Val | None:
    op = s.world.choose(["ArgMax", "ArgMin"])
    x = s.pick(lambda v: v.rank > 0 and v.dtype in FLOATS + INTS and s.runs(op, v.dtype))
    if x is None:
        return None
    axis, keep = s.world.between(0, x.rank - 1), s.world.between(0, 1)
    dims = tuple(1 if i == axis else dim for i, dim in enumerate(x.shape) if keep or i != axis)
    index = s.op(op, [x], dims, "int64", axis=axis, keepdims=keep)
    if s.world.chance(0.4) and isinstance(x.shape[axis], int):
        table = s.const(s.world.array(s.world.real, (int(x.shape[axis]), 2)), s.world.real)
        return gather(s, table, index)
    return index


def top(s: Scope) -> Val | None:
    x = s.pick(
        lambda v: v.rank > 0 and isinstance(v.shape[-1], int) and v.shape[-1] > 1 and v.dtype in FLOATS and s.runs("TopK", v.dtype)
    )
    if x is None or s.world.opset < 10:
        return None
    dims = (*x.shape[:-1], 1)
    return s.ops("TopK", [x, s.const(np.array([1]))], [x.of(dims), Val("", "int64", dims)], axis=-1)[s.world.choose([0, 0, 1])]
