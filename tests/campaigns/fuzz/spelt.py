"""Operators in the form that an opset has them in."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.values import Dim, Val, elem_type

__all__ = [
    "broadcast",
    "cast",
    "concat",
    "dims_vector",
    "elementwise",
    "expand",
    "filled",
    "gather",
    "linear",
    "matmul",
    "one_element",
    "reduce",
    "reshape",
    "slice_",
    "split",
    "squeeze",
    "step_of",
    "transpose",
    "unsqueeze",
]

END = 2**31 - 1


def broadcast(s: Scope, *values: Val) -> tuple[Dim, ...]:
    rank = max(value.rank for value in values)
    padded = [(1,) * (rank - value.rank) + value.shape for value in values]
    return tuple(_common(s, dims) for dims in zip(*padded, strict=True))


def _common(s: Scope, dims: Sequence[Dim]) -> Dim:
    return next((dim for dim in dims if dim != 1 and s.world.size(dim) != 1), next((d for d in dims if d != 1), 1))


def elementwise(s: Scope, op: str, *values: Val, dtype: str = "", **attributes: Any) -> Val:
    return s.op(op, values, broadcast(s, *values), dtype, **attributes)


def cast(s: Scope, x: Val, dtype: str) -> Val:
    return x if x.dtype == dtype else s.op("Cast", [x], x.dims, dtype, to=elem_type(dtype))


def unsqueeze(s: Scope, x: Val, axis: int) -> Val:
    at = axis % (x.rank + 1)
    dims = (*x.shape[:at], 1, *x.shape[at:])
    if s.world.opset >= 13:
        return s.op("Unsqueeze", [x, s.ints(axis)], dims)
    return s.op("Unsqueeze", [x], dims, axes=[at if s.world.opset < 11 else axis])


def squeeze(s: Scope, x: Val, axis: int) -> Val:
    at = axis % x.rank
    dims = (*x.shape[:at], *x.shape[at + 1 :])
    if s.world.opset >= 13:
        return s.op("Squeeze", [x, s.ints(axis)], dims)
    return s.op("Squeeze", [x], dims, axes=[at if s.world.opset < 11 else axis])


def transpose(s: Scope, x: Val, perm: Sequence[int]) -> Val:
    return s.op("Transpose", [x], tuple(x.shape[p] for p in perm), perm=list(perm))


def reduce(s: Scope, op: str, x: Val, axes: Sequence[int] | None, keepdims: bool = False) -> Val:
    gone = {axis % x.rank for axis in axes} if axes is not None else set(range(x.rank))
    dims = tuple(1 if i in gone else dim for i, dim in enumerate(x.shape) if keepdims or i not in gone)
    keep: dict[str, Any] = {"keepdims": int(keepdims)}
    if axes is None:
        return s.op(op, [x], dims, **keep)
    if s.world.opset >= (13 if op == "ReduceSum" else 18):
        return s.op(op, [x, s.ints(*axes)], dims, **keep)
    axes = [axis % x.rank for axis in axes] if s.world.opset < 11 else list(axes)
    return s.op(op, [x], dims, axes=axes, **keep)


def concat(s: Scope, values: Sequence[Val], axis: int) -> Val:
    at = axis % values[0].rank
    lengths = [value.shape[at] for value in values]
    if all(isinstance(length, int) for length in lengths):
        length: Dim = sum(int(length) for length in lengths)
    elif len(values) == 1:
        length = lengths[0]
    else:
        length = s.world.derive(sum(s.world.size(length) for length in lengths))
    first = values[0].shape
    return s.op("Concat", values, (*first[:at], length, *first[at + 1 :]), axis=at if s.world.opset < 11 else axis)


def slice_(s: Scope, x: Val, start: int | Val, end: int | Val, axis: int, step: int = 1, length: Dim | None = None) -> Val:
    """``x[start:end:step]`` along an axis; ``length`` says the result's size where it is not plain."""
    at = axis % x.rank
    if length is None:
        assert isinstance(start, int)
        assert isinstance(end, int)
        size = len(range(s.world.size(x.shape[at]))[slice(start, end if abs(end) < END else None, step)])
        length = size if isinstance(x.shape[at], int) else s.world.derive(size)
    dims = (*x.shape[:at], length, *x.shape[at + 1 :])
    if s.world.opset < 10:
        assert isinstance(start, int)
        assert isinstance(end, int)
        return s.op("Slice", [x], dims, starts=[start], ends=[end], axes=[at])
    bounds = [bound if isinstance(bound, Val) else s.ints(bound) for bound in (start, end)]
    steps = [s.ints(step)] if step != 1 or s.world.chance(0.2) else []
    return s.op("Slice", [x, *bounds, s.ints(at), *steps], dims)


def split(s: Scope, x: Val, sizes: Sequence[int], axis: int) -> list[Val]:
    """The parts of ``x``, by Split, or by Slices."""
    at = axis % x.rank
    outs = [x.of((*x.shape[:at], size, *x.shape[at + 1 :])) for size in sizes]
    if s.world.chance(0.25):
        ends = np.cumsum(sizes).tolist()
        return [slice_(s, x, end - size, end, at, length=size) for size, end in zip(sizes, ends, strict=True)]
    if s.world.opset >= 18 and len(set(sizes)) == 1 and s.world.chance(0.5):
        return s.ops("Split", [x], outs, axis=axis, num_outputs=len(sizes))
    if s.world.opset >= 13:
        return s.ops("Split", [x, s.ints(*sizes)], outs, axis=axis)
    return s.ops("Split", [x], outs, axis=at, split=list(sizes))


def gather(s: Scope, x: Val, index: Val, axis: int = 0) -> Val:
    at = axis % x.rank
    dims = (*x.shape[:at], *index.shape, *x.shape[at + 1 :])
    return s.op("Gather", [x, index], dims, **({"axis": axis if s.world.opset >= 11 else at} if at or s.world.chance(0.5) else {}))


def matmul(s: Scope, x: Val, w: Val) -> Val:
    return s.op("MatMul", [x, w], (*x.shape[:-1], w.shape[-1]))


def linear(s: Scope, x: Val, width: int, bias: bool = True, scale: float = 0.6) -> Val:
    """``x @ W + b``, spelt as MatMul, Gemm, a transposed weight, or Einsum."""
    world = s.world
    features = x.shape[-1]
    assert isinstance(features, int)
    how = world.choose(["matmul", "matmul", "gemm", "gemm_t", "transposed", "einsum"])
    if how.startswith("gemm") and x.rank == 2 and s.runs("Gemm", x.dtype):
        turned = how == "gemm_t"
        w = s.weight(*((width, features) if turned else (features, width)), dtype=x.dtype, scale=scale)
        b = s.weight(*world.choose([(width,), (1, width)]), dtype=x.dtype) if bias or world.opset < 11 else None
        return s.op("Gemm", [x, w, b] if b else [x, w], (x.shape[0], width), transB=int(turned))
    if how == "einsum" and x.rank == 2 and s.runs("Einsum", x.dtype):
        w = s.weight(width, features, dtype=x.dtype, scale=scale)
        y = s.op("Einsum", [x, w], (x.shape[0], width), equation="bi,oi->bo")
    elif how == "transposed":
        y = matmul(s, x, transpose(s, s.weight(width, features, dtype=x.dtype, scale=scale), [1, 0]))
    else:
        y = matmul(s, x, s.weight(features, width, dtype=x.dtype, scale=scale))
    if not bias:
        return y
    b = s.weight(width, dtype=x.dtype)
    return elementwise(s, "Add", *([y, b] if world.chance(0.7) else [b, y]))


def dims_vector(s: Scope, dims: Sequence[Dim]) -> Val:
    """The sizes as an int64 vector: numbers written down, free ones read off a value in sight."""
    if all(isinstance(dim, int) for dim in dims):
        return s.ints(*(int(dim) for dim in dims))
    parts = [s.ints(dim) if isinstance(dim, int) else step_of(s, dim) for dim in dims]
    return parts[0] if len(parts) == 1 else concat(s, parts, 0)


def step_of(s: Scope, dim: Dim) -> Val:
    """A size as a vector of one element."""
    if isinstance(dim, int):
        return s.ints(dim)
    seen = s.pick(lambda v: dim in v.shape, own=0.5)
    if seen is None:
        s.world.declared[dim] = "static"  # the model is one of this size alone
        return s.ints(s.world.size(dim))
    at = seen.shape.index(dim)
    if s.world.opset >= 15 and s.world.chance(0.4):
        return s.op("Shape", [seen], (1,), "int64", start=at, end=at + 1)
    shape = s.op("Shape", [seen], (seen.rank,), "int64")
    if s.world.chance(0.5):
        return slice_(s, shape, at, at + 1, 0)
    return gather(s, shape, s.ints(at))


def reshape(s: Scope, x: Val, dims: Sequence[Dim]) -> Val:
    """``x`` with these sizes, of which at most one free one needs no reading; sometimes by ``allowzero``, as torch writes it."""
    free = [i for i, dim in enumerate(dims) if not isinstance(dim, int)]
    zeros = {"allowzero": 1} if s.world.opset >= 14 and s.world.chance(0.4) else {}
    if len(free) == 1 and s.world.chance(0.6):
        numbers = [-1 if i in free else int(dim) for i, dim in enumerate(dims)]
        return s.op("Reshape", [x, s.ints(*numbers)], dims, **zeros)
    return s.op("Reshape", [x, dims_vector(s, dims)], dims, **zeros)


def expand(s: Scope, x: Val, dims: Sequence[Dim]) -> Val:
    return s.op("Expand", [x, dims_vector(s, dims)], dims)


def filled(s: Scope, dtype: str, dims: Sequence[Dim], number: float = 0.0) -> Val:
    """A tensor full of one number, its sizes read off others where they are free."""
    fixed = all(isinstance(dim, int) for dim in dims)
    if (fixed and s.world.chance(0.6)) or s.world.opset < 8:
        s.world.declared.update({dim: "static" for dim in dims if isinstance(dim, str)})
        return s.const(np.full([s.world.size(dim) for dim in dims], number), dtype)
    if (
        s.world.opset >= 9
        and s.runs("ConstantOfShape", "int64")
        and dtype in ("float32", "float64", "float16", "int32", "int64", "bool")
    ):
        tensor = one_element(number, dtype)
        return s.op("ConstantOfShape", [dims_vector(s, dims)], dims, dtype, value=tensor)
    return expand(s, s.const(np.full([1] * len(dims), number), dtype), dims)


def one_element(number: float, dtype: str) -> Any:
    from onnx import numpy_helper

    from tests.campaigns.fuzz.values import numpy_type

    return numpy_helper.from_array(np.full((1,), number, numpy_type(dtype)), "value")
