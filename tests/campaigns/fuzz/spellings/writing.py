"""How a Loop keeps what it computed in each step: stacked, or written into a buffer that is carried along."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import cast, concat, dims_vector, elementwise, expand, filled, reshape, slice_, unsqueeze
from tests.campaigns.fuzz.values import INTS, Dim, Val, elem_type

__all__ = ["Writer", "drawn_writer"]


@dataclass(frozen=True)
class Writer:
    """What the buffer begins with, how a step writes, and what the buffer becomes after the loop."""

    start: Val
    write: Callable[[Scope, Val, Val, Val], Val]
    finish: Callable[[Scope, Val], Val]


def drawn_writer(outer: Scope, value: Val, time: Dim) -> Writer | None:
    """A way to keep ``value`` of each step; None for a stacked result of the Loop."""
    world = outer.world
    if world.chance(0.5) or value.dims is None:
        return None
    kinds = ["concat"]
    if world.opset >= 11:
        kinds += ["scatter nd", "torch", "grid", "elements"]
        kinds += ["sequence", "sequence"] if world.opset >= 13 else []
        kinds += ["where"] if outer.runs("Where", value.dtype) and outer.runs("Equal", "int64") else []
    kind = world.choose(kinds)
    if value.dtype not in ("float32", "float64", *INTS) or any(dim in world.derived for dim in value.shape):
        return None
    world.feature(f"rows written by {kind}")
    whole = (time, *value.shape)
    if kind == "sequence":
        empty = outer.ops("SequenceEmpty", [], [Val("", value.dtype, None)], dtype=elem_type(value.dtype))[0]
        return Writer(
            empty, lambda s, buffer, i, v: s.op("SequenceInsert", [buffer, v], None), lambda s, made: _stacked(s, made, whole)
        )
    if kind == "concat":
        grown = world.derive(0)
        start = filled(outer, value.dtype, (0, *value.shape)).of((grown, *value.shape))
        return Writer(start, _appended, lambda s, made: made.of(whole))
    start = filled(outer, value.dtype, whole)
    return Writer(start, _WRITES[kind], lambda s, made: made)


def _stacked(s: Scope, made: Val, whole: tuple[Dim, ...]) -> Val:
    return s.op("ConcatFromSequence", [made], whole, made.dtype, axis=0, new_axis=1)


def _appended(s: Scope, buffer: Val, index: Val, value: Val) -> Val:
    return concat(s, [buffer, unsqueeze(s, value, 0)], 0).of(buffer.dims)


def _scatter_nd(s: Scope, buffer: Val, index: Val, value: Val) -> Val:
    where = reshape(s, cast(s, index, "int64"), (1, 1))
    return s.op("ScatterND", [buffer, where, unsqueeze(s, value, 0)], buffer.dims)


def _torch(s: Scope, buffer: Val, index: Val, value: Val) -> Val:
    """As TorchScript's exporter writes ``out[t] = h``."""
    index = cast(s, index, "int64")
    row = s.op("Gather", [buffer, index], value.shape, axis=0)
    row_shape = s.op("Shape", [row], (value.rank,), "int64")
    spread = s.op("Expand", [value, row_shape], value.dims)
    first = unsqueeze(s, index, 0)
    counted = s.op("Shape", [first], (1,), "int64")
    rest = slice_(s, s.op("Shape", [buffer], (buffer.rank,), "int64"), 1, 2**31 - 1, 0, length=value.rank)
    shape = s.op("Concat", [counted, rest], (buffer.rank,), axis=0)
    update = s.op("Reshape", [spread, shape], (1, *value.shape))
    return s.op("ScatterND", [buffer, unsqueeze(s, first, 1), update], buffer.dims)


def _grid(s: Scope, buffer: Val, index: Val, value: Val) -> Val:
    """As jax's ``dynamic_update_slice`` comes out: one index for each element."""
    rows = (1, *value.shape)
    size = dims_vector(s, rows)
    columns: list[Val] = []
    for at, dim in enumerate(buffer.shape):
        shape = [1] * buffer.rank
        if at == 0:
            numbers = reshape(s, cast(s, index, "int64"), tuple(shape))
        else:
            if isinstance(dim, int) and s.world.chance(0.5):
                line = s.const(np.arange(dim))
            else:
                limit = (
                    s.op("Squeeze", [dims_vector(s, (dim,))], ())
                    if s.world.opset >= 13
                    else s.op("Reshape", [dims_vector(s, (dim,)), s.const(np.array([], np.int64))], ())
                )
                line = s.op("Range", [s.int(0), limit, s.int(1)], (dim,))
            new = tuple(dim if k == at else 1 for k in range(buffer.rank))
            numbers = s.op("Reshape", [line, s.ints(*(-1 if k == at else 1 for k in range(buffer.rank)))], new)
        columns.append(unsqueeze(s, s.op("Expand", [numbers, size], rows), buffer.rank))
    indices = concat(s, columns, buffer.rank)
    return s.op("ScatterND", [buffer, indices, unsqueeze(s, value, 0)], buffer.dims)


def _elements(s: Scope, buffer: Val, index: Val, value: Val) -> Val:
    update = unsqueeze(s, value, 0)
    one = reshape(s, cast(s, index, "int64"), (1,) * buffer.rank)
    return s.op("ScatterElements", [buffer, expand(s, one, update.shape), update], buffer.dims, axis=0)


def _where(s: Scope, buffer: Val, index: Val, value: Val) -> Val:
    time = buffer.shape[0]
    if isinstance(time, int):
        line = s.const(np.arange(time))
    else:
        limit = reshape(s, dims_vector(s, (time,)), ())
        line = s.op("Range", [s.int(0), limit, s.int(1)], (time,))
    steps = s.op("Reshape", [line, s.ints(-1, *[1] * value.rank)], (time, *[1] * value.rank))
    here = elementwise(s, "Equal", steps, cast(s, index, "int64"), dtype="bool")
    return s.op("Where", [here, unsqueeze(s, value, 0) if s.world.chance(0.5) else value, buffer], buffer.dims, value.dtype)


_WRITES = {"scatter nd": _scatter_nd, "torch": _torch, "grid": _grid, "elements": _elements, "where": _where}
