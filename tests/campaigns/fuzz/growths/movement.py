"""Operators that move elements, and those that read or make sizes."""

import numpy as np

from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import concat, expand, filled, gather, reshape, slice_, split, squeeze, transpose, unsqueeze
from tests.campaigns.fuzz.values import FLOATS, Val

__all__ = [
    "appended",
    "filled_like",
    "flat",
    "gathered",
    "one_hot",
    "padded",
    "parted",
    "permuted",
    "pulled",
    "reshaped",
    "scattered",
    "shape_of",
    "sliced",
    "spread",
    "squeezed",
    "tiled",
    "widened",
]


def permuted(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank > 1 and s.runs("Transpose", v.dtype))
    return x and transpose(s, x, s.world.dice.sample(range(x.rank), x.rank))


def reshaped(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank > 0 and s.runs("Reshape", v.dtype) and v.rank < 4)
    if x is None:
        return None
    world = s.world
    if all(isinstance(dim, int) for dim in x.shape):
        size = int(np.prod([int(dim) for dim in x.shape]))
        return reshape(s, x, world.choose([(size,), (1, size), x.shape[::-1], (*x.shape, 1)]))
    return reshape(s, x, world.choose([(1, *x.shape), (*x.shape, 1), (x.shape[0], 1, *x.shape[1:])]))


def flat(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank > 0 and s.runs("Flatten", v.dtype))
    if x is None:
        return None
    at = s.world.between(0, x.rank)
    sides = [x.shape[:at], x.shape[at:]]
    dims = [side[0] if len(side) == 1 else 1 if not side else None for side in sides]
    for k, side in enumerate(sides):
        if dims[k] is None:
            size = int(np.prod([s.world.size(dim) for dim in side]))
            dims[k] = size if all(isinstance(dim, int) for dim in side) else s.world.derive(size)
    return s.op("Flatten", [x], [dim for dim in dims if dim is not None], axis=at)


def widened(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank < 3 and s.runs("Unsqueeze", v.dtype))
    return x and unsqueeze(s, x, s.world.between(0, x.rank))


def squeezed(s: Scope) -> Val | None:
    x = s.pick(lambda v: 1 in v.shape and s.runs("Squeeze", v.dtype))
    return x and squeeze(s, x, x.shape.index(1))


def appended(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank > 0 and s.runs("Concat", v.dtype))
    if x is None:
        return None
    at = s.world.between(0, x.rank - 1)
    others = [
        s.pick(
            lambda v: (
                v.dtype == x.dtype
                and v.rank == x.rank
                and [d for i, d in enumerate(v.shape) if i != at] == [d for i, d in enumerate(x.shape) if i != at]
            )
        )
        for _ in range(s.world.between(1, 2))
    ]
    return concat(s, [x, *(other or x for other in others)], at)


def parted(s: Scope) -> Val | None:
    x = s.pick(lambda v: any(isinstance(d, int) and d > 1 for d in v.shape) and s.runs("Split", v.dtype))
    if x is None:
        return None
    at = s.world.choose([i for i, dim in enumerate(x.shape) if isinstance(dim, int) and dim > 1])
    size = int(x.shape[at])
    first = s.world.between(1, size - 1)
    return s.world.choose(split(s, x, [first, size - first], at))


def sliced(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank > 0 and s.runs("Slice", v.dtype))
    if x is None:
        return None
    at = s.world.between(0, x.rank - 1)
    start, end, step = s.world.choose(
        [(0, 1, 1), (1, 2**31 - 1, 1), (0, -1, 1), (-1, 2**31 - 1, 1), (-1, -(2**31), -1), (0, 9, 2), (-2, -1, 1)]
    )
    if s.world.opset < 10 and step != 1:
        return None
    whole = step == -1
    return slice_(s, x, start, end, at, step, length=x.shape[at] if whole else None)


def gathered(s: Scope) -> Val | None:
    x = s.pick(
        lambda v: (
            v.rank > 0
            and isinstance(v.shape[0], int)
            and v.shape[0] > 0
            and s.runs("Gather", v.dtype)
            and (v.dtype != "string" or v.rank == 1)
        )
    )
    if x is None:
        return None
    size = int(x.shape[0])
    if s.world.chance(0.3) and s.world.opset >= 12:
        raw = s.pick(lambda v: v.dtype in ("int64", "int32") and v.rank < 3)
        if raw is not None:
            return gather(s, x, s.op("Clip", [raw, s.const(0, raw.dtype), s.const(size - 1, raw.dtype)], raw.dims))
    shape = s.world.choose([(), (1,), (3,), (2, 2)])
    low = -size if s.world.opset >= 11 else 0
    numbers = np.random.default_rng(s.world.dice.getrandbits(32)).integers(low, size, shape)
    return gather(s, x, s.const(numbers, s.world.choose(["int64", "int32"])))


def pulled(s: Scope) -> Val | None:
    x = s.pick(
        lambda v: (
            v.rank > 0
            and isinstance(v.shape[-1], int)
            and v.shape[-1] > 0
            and s.runs("GatherElements", v.dtype)
            and v.dtype != "string"
        )
    )
    if x is None or not all(isinstance(dim, int) for dim in x.shape):
        return None
    shape = [int(dim) for dim in x.shape]
    numbers = np.random.default_rng(s.world.dice.getrandbits(32)).integers(0, shape[-1], shape)
    return s.op("GatherElements", [x, s.const(numbers)], x.dims, axis=-1)


def scattered(s: Scope) -> Val | None:
    x = s.pick(
        lambda v: (
            v.rank > 0 and isinstance(v.shape[0], int) and v.shape[0] > 0 and v.dtype in FLOATS and s.runs("ScatterND", v.dtype)
        )
    )
    if x is None:
        return None
    row = s.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape[1:]) or filled(s, x.dtype, x.shape[1:], 0.5)
    index = s.const(np.array([[s.world.between(0, int(x.shape[0]) - 1)]]))
    return s.op("ScatterND", [x, index, unsqueeze(s, row, 0)], x.dims)


def spread(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank < 3 and s.runs("Expand", v.dtype))
    if x is None:
        return None
    dim = s.world.choose([2, 1, "B"])
    if 1 in x.shape and s.world.chance(0.5):
        at = x.shape.index(1)
        return expand(s, x, (*x.shape[:at], 2, *x.shape[at + 1 :]))
    return expand(s, x, (dim, *x.shape))


def tiled(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank > 0 and isinstance(v.shape[-1], int) and v.shape[-1] < 5 and s.runs("Tile", v.dtype))
    if x is None:
        return None
    return s.op("Tile", [x, s.ints(*[1] * (x.rank - 1), 2)], (*x.shape[:-1], 2 * int(x.shape[-1])))


def padded(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank > 0 and isinstance(v.shape[-1], int) and v.dtype in FLOATS and s.runs("Pad", v.dtype))
    if x is None:
        return None
    pads = [*[0] * (x.rank - 1), 1, *[0] * x.rank]
    dims = (*x.shape[:-1], int(x.shape[-1]) + 1)
    return s.op("Pad", [x, s.ints(*pads)], dims) if s.world.opset >= 11 else s.op("Pad", [x], dims, pads=pads)


def shape_of(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank > 0)
    if x is None:
        return None
    return s.op("Size", [x], (), "int64") if s.world.chance(0.3) else s.op("Shape", [x], (x.rank,), "int64")


def filled_like(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank > 0)
    if x is None or s.world.opset < 9:
        return None
    from tests.campaigns.fuzz.spelt import one_element

    shape = s.op("Shape", [x], (x.rank,), "int64")
    dtype = s.world.choose([s.world.real, "int64"])
    return s.op("ConstantOfShape", [shape], x.dims, dtype, value=one_element(s.world.choose([0, 0.5]), dtype))


def one_hot(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.dtype == "int64" and v.rank in (1, 2))
    if x is None or s.world.opset < 11:
        return None
    values = s.const(np.array([-0.5, 2.0], np.float32))
    axis = s.world.choose([-1, 0])
    dims = (*x.shape, 3) if axis else (3, *x.shape)
    return s.op("OneHot", [x, s.int(3), values], dims, "float32", axis=axis)
