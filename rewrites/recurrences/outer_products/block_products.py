"""Products of matrices for one block of steps of a matrix that takes up outer products, or for many blocks side by side.

    reads = (Q K^T * within) V + (Q S) * before        S' = whole * S + K^T (V * left)

Q, K and V are the queries, keys and values of the steps of a block, and S the matrix before it. The others are ``BlockWeights``:
each is a product of the decays between two steps, or the exponential of the sum of their exponents. It is never a quotient of
products of all decays so far, so a decay of 0 is no exception.

If each key of a head has decays of its own, queries and keys of two steps meet in a product with the decays in between, key by key
(``key_products``). Blocks of 1, 2, 4, ... steps are put together by two and two. Queries of the later block are multiplied by its
decays up to them, keys of the earlier block by its decays after them, and a product of matrices has all pairs of those.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.ops.versions import concat, reduce, reshape, slice_axis, split, transpose
from rewrites.ops.versions.emit import where

__all__ = ["Products", "by_step", "constant_weights", "exponent_weights", "key_products", "product_weights", "state_after"]


@dataclass(frozen=True)
class BlockWeights:
    """The weights of a block; all but ``within`` are None if nothing decays.

    Args:
        within: [..., heads, t, s], of what comes in step s for what is read in step t; 0 if that is earlier.
        before: [..., heads, t, 1], of the matrix before the block for step t.
        left: [..., heads, s, 1], of step s for the matrix after the block.
        whole: [..., heads, 1 or keys, 1], of the matrix before for that after.
    """

    within: ir.Value | None = None
    before: ir.Value | None = None
    left: ir.Value | None = None
    whole: ir.Value | None = None


def constant_weights(build: Builder, decay: np.ndarray | None, length: int, dtype: np.dtype) -> BlockWeights:
    """Return the weights of ``decay`` [heads], the same in each step, or of none; they have no axis in front of the heads."""
    lag = np.arange(length)[:, None] - np.arange(length)[None, :]
    if decay is None:
        return BlockWeights(build.const((lag >= 0).astype(dtype)))
    powers = decay.astype(np.float64)[:, None] ** np.arange(length + 1)
    within = np.where(lag >= 0, powers[:, np.maximum(lag, 0)], 0)
    parts = (within, powers[:, 1:, None], powers[:, length - 1 :: -1, None], powers[:, length:, None])
    return BlockWeights(*(build.const(part.astype(dtype)) for part in parts))


def product_weights(build: Builder, decays: ir.Value, length: int, dtype: np.dtype, *, is_flat: bool) -> BlockWeights:
    """Return the weights of ``decays`` [..., steps, heads, 1], with one axis in front if ``is_flat``."""
    rank, unit = 4 if is_flat else 3, build.const(np.array(1, dtype))
    weights, reach = _between(build, decays, length, unit, rank), 1
    while reach < length:
        pads = [0] * (2 * rank)
        pads[rank - 2] = reach
        earlier = slice_axis(build, weights, rank - 2, 0, length - reach)
        weights = build.op("Mul", weights, build.op("Pad", earlier, build.const(pads), unit))
        reach *= 2
    return _parted(build, weights, length, dtype, rank)


def exponent_weights(build: Builder, exponents: ir.Value, length: int, dtype: np.dtype, *, is_flat: bool) -> BlockWeights:
    """Return the weights of decays by their ``exponents`` [..., steps, heads, 1], as above."""
    rank, zero = 4 if is_flat else 3, build.const(np.array(0, dtype))
    axis = build.const(np.array(rank - 2, np.int64))
    sums = build.op("CumSum", _between(build, exponents, length, zero, rank), axis)
    return _parted(build, build.op("Exp", sums), length, dtype, rank)


def _between(build: Builder, rows: ir.Value, length: int, neutral: ir.Value, rank: int) -> ir.Value:
    """Return [..., heads, t, s + 1]: the row of step t if it is after step s, else ``neutral``."""
    is_between = np.arange(length)[:, None] >= np.arange(length + 1)[None, :]
    return where(build, build.const(is_between), by_step(build, rows, rank == 4), neutral)


def _parted(build: Builder, weights: ir.Value, length: int, dtype: np.dtype, rank: int) -> BlockWeights:
    before, after = split(build, weights, rank - 1, [1, length], 2)
    last = slice_axis(build, after, rank - 2, length - 1, length)
    order = [*range(rank - 2), rank - 1, rank - 2]
    within = build.op("Mul", after, build.const(np.tril(np.ones((length, length), dtype))))
    whole = slice_axis(build, before, rank - 2, length - 1, length)
    return BlockWeights(within, before, transpose(build, last, order), whole)


@dataclass(frozen=True)
class Products:
    """Writes to ``build``, of ``keys``, ``values`` and ``queries`` [..., heads, steps, size]; ``is_flat``: blocks are in front.

    If heads share one of these, or their decays, it has one head. ``scores``: [..., heads, t, s], of what comes in step s for what
    is read in step t, if decays are by key; keys and queries are multiplied by their decays then.
    """

    build: Builder
    keys: ir.Value
    values: ir.Value
    queries: ir.Value | None
    weights: BlockWeights
    is_flat: bool
    scores: ir.Value | None = None

    def after(self, state: ir.Value) -> ir.Value:
        """Return the matrix after the block."""
        return state_after(self.build, state, self.weights.whole, self.drive())

    def drive(self) -> ir.Value:
        """Return what the steps of the block leave in the matrix."""
        build, left, keys, values = self.build, self.weights.left, self.keys, self.values
        if left is not None and _size(values) <= _size(keys):
            values = build.op("Mul", values, left)
        elif left is not None:
            keys = build.op("Mul", keys, left)
        return build.op("MatMul", _turned(build, keys, self.is_flat), values)

    def read(self, state: ir.Value) -> ir.Value:
        """Return what is read after each step, [..., steps, heads, values], if ``state`` is the matrix before the block."""
        build, before, within, queries = self.build, self.weights.before, self.weights.within, self.queries
        assert queries is not None
        scores = self.scores
        if scores is None:
            scores = build.op("MatMul", queries, _turned(build, self.keys, self.is_flat))
            scores = build.op("Mul", scores, within)
        own = build.op("MatMul", scores, self.values)
        if before is not None and _size(queries) < _size(self.values):
            queries, before = build.op("Mul", queries, before), None
        earlier = build.op("MatMul", queries, state)
        earlier = earlier if before is None else build.op("Mul", earlier, before)
        return by_step(build, build.op("Add", own, earlier), self.is_flat)


def by_step(build: Builder, rows: ir.Value, is_flat: bool) -> ir.Value:
    """Return [..., heads, steps, size] as [..., steps, heads, size], and the other way round."""
    return transpose(build, rows, [0, 2, 1, 3] if is_flat else [1, 0, 2])


def state_after(build: Builder, state: ir.Value, whole: ir.Value | None, drive: ir.Value) -> ir.Value:
    """Return ``state`` times ``whole``, plus ``drive``."""
    return build.op("Add", state if whole is None else build.op("Mul", state, whole), drive)


def key_products(
    build: Builder,
    keys: ir.Value,
    values: ir.Value,
    queries: ir.Value | None,
    decays: ir.Value,
    length: int,
    dtype: np.dtype,
    *,
    is_flat: bool,
) -> Products:
    """Put blocks together until they have ``length`` steps, a power of 2; all are [..., heads, steps, size]."""
    front, size = [0, 0] if is_flat else [0], _size(keys)
    axis = len(front)
    unit = build.const(np.array(1, dtype))

    def halves(value: ir.Value, rows: int, columns: int) -> tuple[ir.Value, ir.Value]:
        pairs = reshape(build, value, [*front, -1, 2, rows, columns])
        return slice_axis(build, pairs, axis + 1, 0, 1), slice_axis(build, pairs, axis + 1, 1, 2)

    def padded(value: ir.Value, at: int, before: int, after: int, fill: ir.Value | None = None) -> ir.Value:
        pads = [0] * (2 * (axis + 4))
        pads[at], pads[at + axis + 4] = before, after
        return build.op("Pad", value, build.const(pads), fill)

    def multiplied(rows: ir.Value, factors: ir.Value, reach: int) -> ir.Value:
        pairs = reshape(build, rows, [*front, -1, 2, reach, size])
        return reshape(build, build.op("Mul", pairs, factors), [*front, length, size])

    def met(left: ir.Value, right: ir.Value, last: int) -> ir.Value:
        return reduce(build, "ReduceSum", build.op("Mul", left, right), [last], True)  # faster than products of 1 by 1

    scores: ir.Value | None = None
    if queries is not None:
        scores, queries = met(queries, keys, axis + 1), build.op("Mul", queries, decays)
    ends, reach = decays, 1
    while reach < length:
        first, second = halves(ends, 1, size)
        if queries is not None and scores is not None:
            early, late = halves(keys, reach, size)[0], halves(queries, reach, size)[1]
            turned = [*range(axis + 2), axis + 3, axis + 2]
            low = met(late, early, axis + 3) if reach == 1 else build.op("MatMul", late, transpose(build, early, turned))
            upper, lower = halves(scores, reach, reach)
            rows = [padded(upper, axis + 3, 0, reach), concat(build, [low, lower], axis + 3)]
            scores = concat(build, rows, axis + 2)
            queries = multiplied(queries, padded(first, axis + 1, 1, 0, unit), reach)
        keys = multiplied(keys, padded(second, axis + 1, 0, 1, unit), reach)
        ends = reshape(build, build.op("Mul", first, second), [*front, -1, size])
        reach *= 2
    scores = None if scores is None else reshape(build, scores, [*front, length, length])
    weights = BlockWeights(whole=reshape(build, ends, [*front, size, 1]))
    return Products(build, keys, values, queries, weights, is_flat, scores)


def _turned(build: Builder, rows: ir.Value, is_flat: bool) -> ir.Value:
    return transpose(build, rows, [0, 1, 3, 2] if is_flat else [0, 2, 1])


def _size(rows: ir.Value) -> int:
    """Return how many numbers a head has in one step, 0 if that is unknown."""
    size = None if rows.shape is None else rows.shape.dims[-1]
    return size if isinstance(size, int) else 0
