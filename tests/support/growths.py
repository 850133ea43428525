"""The table of what can grow in a random graph: one entry an operator, or a family of operators used alike."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from tests.support.growing import FLOATS, INTS, Growth, Scope, Val, elem_type, tame

__all__ = ["GROWTHS"]

GROWTHS: list[Growth] = []


def _grows(growth: Growth) -> Growth:
    GROWTHS.append(growth)
    return growth


# Elementwise ----------------------------------------------------------------------------------------------------------

_SMOOTH: dict[str, Callable[[float], float]] = {
    "Tanh": lambda b: 1,
    "Sigmoid": lambda b: 1,
    "Relu": lambda b: b,
    "LeakyRelu": lambda b: b,
    "Elu": lambda b: max(b, 1),
    "HardSigmoid": lambda b: 1,
    "Softplus": lambda b: b + 1,
    "Softsign": lambda b: 1,
    "Erf": lambda b: 1,
    "Sin": lambda b: 1,
    "Cos": lambda b: 1,
    "Exp": lambda b: math.exp(min(b, 3)),
}
_KEEPS_EXACT = ("Identity", "Neg", "Abs")
_STEPS = ("Sign", "Floor", "Ceil", "Round", "Not")


@_grows
def smooth(s: Scope) -> Val | None:
    op = s.world.choose(list(_SMOOTH))
    x = s.pick(lambda v: s.runs(op, v.dtype) and (op != "Exp" or v.bound <= 3))
    return x and s.node(op, [x], replace(x, bound=_SMOOTH[op](x.bound), exact=False))


@_grows
def plain_unary(s: Scope) -> Val | None:
    op = s.world.choose(_KEEPS_EXACT + _STEPS)
    x = s.pick(lambda v: s.runs(op, v.dtype) and (v.exact or op not in _STEPS))
    return x and s.node(op, [x], x)


def _partner(s: Scope, x: Val, suits: Callable[[Val], bool] = lambda v: True) -> Val:
    """Another value of the type of `x` that broadcasts with it: one in sight, or a new constant."""

    def broadcasts(v: Val) -> bool:
        pairs = zip(reversed(v.shape), reversed(x.shape), strict=False)
        return v.dtype == x.dtype and suits(v) and all(a == b or 1 in (a, b) for a, b in pairs)

    found = None if s.world.chance(3) else s.pick(broadcasts)
    shape = s.world.choose([x.shape, x.shape[1:], ()])
    return found or s.constant(s.world.array(x.dtype, shape))


def _combined(a: Val, b: Val, bound: float, exact: bool) -> Val:
    shape = tuple(np.broadcast_shapes(a.shape, b.shape))
    return replace(a, shape=shape, bound=bound, exact=exact or a.dtype not in FLOATS)


@_grows
def arithmetic(s: Scope) -> Val | None:
    op = s.world.choose(["Add", "Mul", "Sub", "Max", "Min"])
    x = s.pick(lambda v: s.runs(op, v.dtype))
    if x is None:
        return None
    y = _partner(s, x)
    bound = {"Add": x.bound + y.bound, "Sub": x.bound + y.bound, "Mul": x.bound * y.bound}.get(op, max(x.bound, y.bound))
    operands = [x, y] if s.world.chance() else [y, x]
    return s.node(op, operands, _combined(x, y, bound, op in ("Max", "Min") and x.exact and y.exact))


@_grows
def logic(s: Scope) -> Val | None:
    op = s.world.choose(["And", "Or", "Xor"])
    x = s.pick(lambda v: v.dtype == "bool")
    if x is None:
        return None
    y = _partner(s, x)
    return s.node(op, [x, y], _combined(x, y, 1, True))


@_grows
def comparison(s: Scope) -> Val | None:
    # before opset 16 onnxruntime infers no shapes for the compound ones, and a Scan needs shapes of all its outputs
    compound = ["GreaterOrEqual", "LessOrEqual"] if s.world.opset >= 16 else []
    op = s.world.choose(["Less", "Greater", "Equal", *compound])
    x = s.pick(lambda v: v.exact and s.runs(op, v.dtype))
    if x is None:
        return None
    y = _partner(s, x, lambda v: v.exact)
    return s.node(op, [x, y], replace(_combined(x, y, 1, True), dtype="bool"))


@_grows
def where(s: Scope) -> Val | None:
    condition = s.pick(lambda v: v.dtype == "bool")
    x = s.pick(lambda v: s.runs("Where", v.dtype))
    if condition is None or x is None:
        return None
    y = _partner(s, x)
    out = _combined(x, y, max(x.bound, y.bound), x.exact and y.exact)
    try:
        out = replace(out, shape=tuple(np.broadcast_shapes(out.shape, condition.shape)))
    except ValueError:
        return None
    return s.node("Where", [condition, x, y], out)


@_grows
def cast(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.dtype != "string" and (v.exact or v.dtype in FLOATS))
    if x is None:
        return None
    numeric = sorted({*s.world.dtypes} - {"string"} | {"float32", "int64"})
    to = s.world.choose(numeric if x.exact else [d for d in numeric if d in FLOATS])
    return s.node("Cast", [x], replace(x, dtype=to), to=elem_type(to))


@_grows
def distance(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.dtype in FLOATS and v.rank > 0)
    if x is None:
        return None
    y = _partner(s, x)
    difference = s.node("Sub", [x, y], _combined(x, y, x.bound + y.bound, False))
    difference = tame(s, difference, 4)
    squares = s.node("Mul", [difference, difference], replace(difference, bound=16))
    total = _reduced(s, "ReduceSum", squares, [squares.rank - 1], keepdims=0, bound=16.0 * squares.shape[-1])
    shifted = s.node("Add", [total, s.constant(np.array(0.25, x.dtype))], replace(total, bound=total.bound + 0.25))
    return s.node("Sqrt", [shifted], replace(shifted, bound=math.sqrt(shifted.bound)))


# Contractions and reductions ------------------------------------------------------------------------------------------


def _weight(s: Scope, like: Val, shape: tuple[int, ...]) -> Val:
    """A matrix in sight of that shape, or a constant one."""
    found = None if s.world.chance() else s.pick(lambda v: v.dtype == like.dtype and v.shape == shape)
    return found or s.constant(s.world.array(like.dtype, shape))


@_grows
def matmul(s: Scope) -> Val | None:
    x = s.pick(lambda v: s.runs("MatMul", v.dtype) and v.rank > 0)
    if x is None:
        return None
    w = _weight(s, x, (x.shape[-1], s.world.choose(s.world.dims)))
    out = replace(x, shape=(*x.shape[:-1], w.shape[1]), bound=x.shape[-1] * x.bound * w.bound, exact=x.dtype in INTS)
    return s.node("MatMul", [x, w], out)


@_grows
def matmul_of_two(s: Scope) -> Val | None:
    x = s.pick(lambda v: s.runs("MatMul", v.dtype) and v.rank > 0)
    y = x and s.pick(lambda v: v.dtype == x.dtype and v.rank > 0 and v.shape[-2:][0] == x.shape[-1])
    if x is None or y is None:
        return None
    try:
        shape = np.matmul(np.zeros(x.shape), np.zeros(y.shape)).shape
    except ValueError:
        return None
    out = replace(x, shape=tuple(shape), bound=x.shape[-1] * x.bound * y.bound, exact=x.dtype in INTS)
    return s.node("MatMul", [x, y], out)


@_grows
def gemm(s: Scope) -> Val | None:
    x = s.pick(lambda v: s.runs("Gemm", v.dtype) and v.rank == 2)
    if x is None:
        return None
    trans_a, trans_b, n = s.world.between(0, 1), s.world.between(0, 1), s.world.choose(s.world.dims)
    m, k = x.shape[::-1] if trans_a else x.shape
    w = _weight(s, x, (n, k) if trans_b else (k, n))
    c = s.constant(s.world.array(x.dtype, s.world.choose([(n,), (1, n), (m, n), ()])))
    alpha, beta = s.world.choose([1.0, 0.5]), s.world.choose([1.0, 2.0])
    out = replace(x, shape=(m, n), bound=k * x.bound * w.bound + beta * c.bound, exact=False)
    return s.node("Gemm", [x, w, c], out, alpha=alpha, beta=beta, transA=trans_a, transB=trans_b)


_REDUCTIONS: dict[str, Callable[[float, int], float]] = {
    "ReduceSum": lambda b, n: n * b,
    "ReduceMean": lambda b, n: b,
    "ReduceMax": lambda b, n: b,
    "ReduceMin": lambda b, n: b,
    "ReduceSumSquare": lambda b, n: n * b * b,
    "ReduceL1": lambda b, n: n * b,
    "ReduceL2": lambda b, n: n * b,
    "ReduceLogSumExp": lambda b, n: b + n,
    "ReduceProd": lambda b, n: max(b, 1) ** n,
}
_FLOAT_REDUCTIONS = ("ReduceMean", "ReduceL2", "ReduceLogSumExp")


def _reduced(s: Scope, op: str, x: Val, axes: Sequence[int] | None, keepdims: int, bound: float) -> Val:
    whole = [a % x.rank for a in axes] if axes is not None else list(range(x.rank))
    shape = tuple(1 if i in whole else d for i, d in enumerate(x.shape) if keepdims or i not in whole)
    exact = x.dtype in INTS or (x.exact and op in ("ReduceMax", "ReduceMin"))
    out = replace(x, shape=shape, bound=bound, exact=exact)
    if axes is None:
        return s.node(op, [x], out, keepdims=keepdims)
    if s.world.opset >= (13 if op == "ReduceSum" else 18):
        return s.node(op, [x, s.shape_constant(axes)], out, keepdims=keepdims)
    return s.node(op, [x], out, keepdims=keepdims, axes=axes)


def _axis(s: Scope, rank: int) -> int:
    return s.world.between(0, rank - 1) - (rank if s.world.opset >= 11 and s.world.chance() else 0)


@_grows
def reduction(s: Scope) -> Val | None:
    op = s.world.choose(list(_REDUCTIONS))
    kinds = FLOATS if op in _FLOAT_REDUCTIONS else FLOATS + INTS

    def suits(v: Val) -> bool:
        small = op != "ReduceProd" or max(v.bound, 1) ** v.size <= 1000
        return v.rank > 0 and small and v.dtype in kinds and s.runs(op, v.dtype)

    x = s.pick(suits)
    if x is None:
        return None
    axes = s.world.choose([None, [_axis(s, x.rank)], sorted({0, x.rank - 1})])
    n = x.size if axes is None else math.prod(x.shape[a] for a in axes)
    return _reduced(s, op, x, axes, s.world.between(0, 1), _REDUCTIONS[op](x.bound, n))


@_grows
def along_an_axis(s: Scope) -> Val | None:
    op = s.world.choose(["Softmax", "LogSoftmax", "CumSum", "LayerNormalization"])
    x = s.pick(lambda v: v.rank > 0 and s.runs(op, v.dtype))
    if x is None:
        return None
    axis = _axis(s, x.rank)
    if op == "CumSum":
        flags = {"exclusive": s.world.between(0, 1), "reverse": s.world.between(0, 1)}
        index = s.constant(np.array(axis, np.int64))
        return s.node(op, [x, index], replace(x, bound=x.bound * x.shape[axis], exact=x.dtype in INTS), **flags)
    if op == "LayerNormalization":
        scale = s.constant(s.world.array(x.dtype, (x.shape[-1],)))
        return s.node(op, [x, scale], replace(x, bound=2 * x.shape[-1], exact=False), axis=-1, epsilon=0.1)
    return s.node(op, [x], replace(x, bound=1 if op == "Softmax" else 2 * x.bound + x.size, exact=False), axis=axis)


@_grows
def arg_max(s: Scope) -> Val | None:
    op = s.world.choose(["ArgMax", "ArgMin"])
    x = s.pick(lambda v: v.exact and v.rank > 0 and s.runs(op, v.dtype))
    if x is None:
        return None
    axis, keepdims = _axis(s, x.rank), s.world.between(0, 1)
    shape = tuple(1 if i == axis % x.rank else d for i, d in enumerate(x.shape) if keepdims or i != axis % x.rank)
    return s.node(op, [x], Val("", "int64", shape, max(x.shape), True), axis=axis, keepdims=keepdims)


# Movement -------------------------------------------------------------------------------------------------------------


@_grows
def transpose(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank > 1 and s.runs("Transpose", v.dtype))
    if x is None:
        return None
    if s.world.chance(4):
        return s.node("Transpose", [x], replace(x, shape=x.shape[::-1]))
    perm = s.world.draw(st.permutations(range(x.rank)))
    return s.node("Transpose", [x], replace(x, shape=tuple(x.shape[p] for p in perm)), perm=perm)


@_grows
def reshape(s: Scope) -> Val | None:
    x = s.pick(lambda v: s.runs("Reshape", v.dtype))
    if x is None:
        return None
    target = s.world.choose([(x.size,), (1, x.size), x.shape[::-1], (*x.shape, 1)])
    spelt = list(target)
    if spelt and s.world.chance():
        spelt[s.world.between(0, len(spelt) - 1)] = -1
    return s.node("Reshape", [x, s.shape_constant(spelt)], replace(x, shape=target))


@_grows
def flatten(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank > 0 and s.runs("Flatten", v.dtype))
    if x is None:
        return None
    axis = s.world.between(0, x.rank)
    return s.node("Flatten", [x], replace(x, shape=(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))), axis=axis)


def _with_axes(s: Scope, op: str, x: Val, axes: Sequence[int], out: Val) -> Val:
    if s.world.opset >= 13:
        return s.node(op, [x, s.shape_constant(axes)], out)
    return s.node(op, [x], out, axes=list(axes))


@_grows
def unsqueeze(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank < 3 and s.runs("Unsqueeze", v.dtype))
    if x is None:
        return None
    axis = _axis(s, x.rank + 1)
    shape = list(x.shape)
    shape.insert(axis % (x.rank + 1), 1)
    return _with_axes(s, "Unsqueeze", x, [axis], replace(x, shape=tuple(shape)))


@_grows
def squeeze(s: Scope) -> Val | None:
    x = s.pick(lambda v: 1 in v.shape and s.runs("Squeeze", v.dtype))
    if x is None:
        return None
    axis = x.shape.index(1)
    spelt = axis - x.rank if s.world.opset >= 11 and s.world.chance() else axis
    return _with_axes(s, "Squeeze", x, [spelt], replace(x, shape=x.shape[:axis] + x.shape[axis + 1 :]))


@_grows
def concat(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank > 0 and s.runs("Concat", v.dtype))
    if x is None:
        return None
    axis = _axis(s, x.rank)

    def without_axis(v: Val) -> list[int]:
        return [d for i, d in enumerate(v.shape) if i != axis % x.rank]

    y = s.pick(lambda v: v.dtype == x.dtype and v.rank == x.rank and without_axis(v) == without_axis(x))
    assert y is not None  # x itself suits
    shape = list(x.shape)
    shape[axis] += y.shape[axis]
    out = replace(x, shape=tuple(shape), bound=max(x.bound, y.bound), exact=x.exact and y.exact)
    return s.node("Concat", [x, y], out, axis=axis)


@_grows
def split(s: Scope) -> Sequence[Val] | None:
    x = s.pick(lambda v: max(v.shape, default=0) > 1 and s.runs("Split", v.dtype))
    if x is None:
        return None
    axis = s.world.choose([i for i, d in enumerate(x.shape) if d > 1])
    first = s.world.between(1, x.shape[axis] - 1)
    sizes = [first, x.shape[axis] - first]
    outs = [replace(x, shape=(*x.shape[:axis], size, *x.shape[axis + 1 :])) for size in sizes]
    if s.world.opset >= 13:
        return s.nodes_outputs("Split", [x, s.shape_constant(sizes)], outs, axis=axis)
    return s.nodes_outputs("Split", [x], outs, axis=axis, split=sizes)


@_grows
def slice_(s: Scope) -> Val | None:
    x = s.pick(lambda v: max(v.shape, default=0) > 1 and s.runs("Slice", v.dtype))
    if x is None:
        return None
    axis = s.world.choose([i for i, d in enumerate(x.shape) if d > 1])
    window = s.world.choose([slice(1, 2**31), slice(0, -1), slice(-2, -1), slice(-1, -(2**31), -1), slice(0, 99, 2)])
    step = window.step or 1
    if s.world.opset < 10 and step != 1:
        return None
    length = len(range(x.shape[axis])[window])
    out = replace(x, shape=(*x.shape[:axis], length, *x.shape[axis + 1 :]))
    if s.world.opset < 10:
        return s.node("Slice", [x], out, starts=[window.start], ends=[window.stop], axes=[axis])
    spelt = [[window.start], [window.stop], [axis]] + ([[step]] if step != 1 else [])
    return s.node("Slice", [x, *map(s.shape_constant, spelt)], out)


@_grows
def gather(s: Scope) -> Val | None:
    # onnxruntime copies only the first string of each slice it gathers
    x = s.pick(lambda v: v.rank > 0 and s.runs("Gather", v.dtype) and (v.dtype != "string" or v.rank == 1))
    if x is None:
        return None
    axis = _axis(s, x.rank)
    indices = s.world.random.integers(0, x.shape[axis], s.world.choose([(), (1,), (3,), (2, 2)]))
    shape = list(x.shape)
    shape[axis % x.rank : axis % x.rank + 1] = np.shape(indices)
    if len(shape) > 3:
        return None
    index = s.constant(np.asarray(indices, s.world.choose(INTS)))
    return s.node("Gather", [x, index], replace(x, shape=tuple(shape)), axis=axis)


@_grows
def expand(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank < 3 and s.runs("Expand", v.dtype))
    if x is None:
        return None
    shape = (s.world.choose(s.world.dims), *x.shape)
    return s.node("Expand", [x, s.shape_constant(shape)], replace(x, shape=shape))


@_grows
def tile(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank > 0 and v.size <= 8 and s.runs("Tile", v.dtype))
    if x is None:
        return None
    repeats = [s.world.between(1, 2) for _ in x.shape]
    shape = tuple(d * r for d, r in zip(x.shape, repeats, strict=True))
    return s.node("Tile", [x, s.shape_constant(repeats)], replace(x, shape=shape))
