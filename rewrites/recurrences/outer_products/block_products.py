"""Accumulate the outer products of a block of steps, or of all blocks at once, by matrix products.

    results = (Q K^T * within) V + (Q S) * before        S' = whole * S + K^T (V * left)

Q, K and V are the queries, keys and values of the steps of a block. S is the matrix before the block, and S' the matrix after it.
The weights ``within``, ``before``, ``whole`` and ``left`` (see ``BlockWeights``) are products of the decays between two steps. If
the decays are known as exponentials, the weights are exponentials of sums of exponents instead. A weight is never computed as the
quotient of two cumulative products, so a decay of 0 needs no special case.

If each key of a head has its own decay, ``key_products`` merges blocks of 1, 2, 4, ... steps in pairs. The product of a query in
the later block and a key in the earlier block must contain all decays between their steps. To get these decays, each query is
multiplied by the decays of the later block up to its step, and each key by the decays of the earlier block after its step. Then one
product of matrices computes all pairs of a query and a key.
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
    """Factors that tell how much of a contribution remains after the decays.

    In the shapes below, s and t are steps of the block. If nothing decays, all weights except ``within`` are None, because they
    would be 1.

    Args:
        within: [..., heads, t, s], how much of what step s adds remains in the result of step t; 0 if t is before s.
        before: [..., heads, t, 1], how much of the matrix before the block remains in the result of step t.
        left: [..., heads, s, 1], how much of what step s adds remains in the matrix after the block.
        whole: [..., heads, 1 or keys, 1], how much of the matrix before the block remains in the matrix after the block.
    """

    within: ir.Value | None = None
    before: ir.Value | None = None
    left: ir.Value | None = None
    whole: ir.Value | None = None


def constant_weights(build: Builder, decay: np.ndarray | None, length: int, dtype: np.dtype) -> BlockWeights:
    """Return the weights of a block of ``length`` steps for a constant ``decay`` [heads].

    Axis 0 of each weight is the head. If ``decay`` is None, nothing decays. The only weight is then ``within``, and it has no head
    axis. Its shape is [t, s]: the step t that reads, and the step s that is read.
    """
    lag = np.arange(length)[:, None] - np.arange(length)[None, :]
    if decay is None:
        return BlockWeights(build.const((lag >= 0).astype(dtype)))
    powers = decay.astype(np.float64)[:, None] ** np.arange(length + 1)
    within = np.where(lag >= 0, powers[:, np.maximum(lag, 0)], 0)
    parts = (within, powers[:, 1:, None], powers[:, length - 1 :: -1, None], powers[:, length:, None])
    return BlockWeights(*(build.const(part.astype(dtype)) for part in parts))


def product_weights(build: Builder, decays: ir.Value, length: int, dtype: np.dtype, *, is_flat: bool) -> BlockWeights:
    """Return the weights of blocks of ``length`` steps, computed as products of the decays of each step.

    ``decays``: [steps, heads, 1], or [blocks, steps, heads, 1] if ``is_flat``.
    """
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
    """Return the weights of blocks of ``length`` steps for decays ``exp(exponents)``.

    They are computed as exponentials of sums of exponents. ``exponents``: [steps, heads, 1], or [blocks, steps, heads, 1] if
    ``is_flat``.
    """
    rank, zero = 4 if is_flat else 3, build.const(np.array(0, dtype))
    axis = build.const(np.array(rank - 2, np.int64))
    sums = build.op("CumSum", _between(build, exponents, length, zero, rank), axis)
    return _parted(build, build.op("Exp", sums), length, dtype, rank)


def _between(build: Builder, rows: ir.Value, length: int, neutral: ir.Value, rank: int) -> ir.Value:
    """Return a tensor [..., heads, t, i]: row t of ``rows`` if ``i <= t``, else ``neutral``.

    The caller computes the weights from this tensor, by cumulative products of decays or cumulative sums of exponents along t. The
    axis t has ``length`` entries, and the axis i has ``length + 1``.
    """
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
    """Writes the products of keys, values and queries of a block, or of all blocks, to ``build``.

    ``keys``, ``values`` and ``queries`` are [..., heads, steps, size] each, with one head if all heads share the tensor.

    Args:
        is_flat: True if the tensors hold all blocks, along axis 0.
        scores: The products of query t and key s, [..., heads, t, s], if each key has its own decay. In this case, keys, queries
            and scores have already been multiplied by the decays. None otherwise.
    """

    build: Builder
    keys: ir.Value
    values: ir.Value
    queries: ir.Value | None
    weights: BlockWeights
    is_flat: bool
    scores: ir.Value | None = None

    def after(self, state: ir.Value) -> ir.Value:
        """Return the matrix after the block, given the matrix ``state`` before the block."""
        return state_after(self.build, state, self.weights.whole, self.drive())

    def drive(self) -> ir.Value:
        """Return the sum of what the steps add to the matrix, decayed up to the end of the block."""
        build, left, keys, values = self.build, self.weights.left, self.keys, self.values
        if left is not None and _size(values) <= _size(keys):
            values = build.op("Mul", values, left)
        elif left is not None:
            keys = build.op("Mul", keys, left)
        return build.op("MatMul", _transposed(build, keys, self.is_flat), values)

    def read(self, state: ir.Value) -> ir.Value:
        """Return the product of each query with the matrix after its step, [..., steps, heads, values].

        ``state`` is the matrix before the block.
        """
        build, before, within, queries = self.build, self.weights.before, self.weights.within, self.queries
        assert queries is not None
        scores = self.scores
        if scores is None:
            scores = build.op("MatMul", queries, _transposed(build, self.keys, self.is_flat))
            scores = build.op("Mul", scores, within)
        own = build.op("MatMul", scores, self.values)
        if before is not None and _size(queries) < _size(self.values):
            queries, before = build.op("Mul", queries, before), None
        earlier = build.op("MatMul", queries, state)
        earlier = earlier if before is None else build.op("Mul", earlier, before)
        return by_step(build, build.op("Add", own, earlier), self.is_flat)


def by_step(build: Builder, rows: ir.Value, is_flat: bool) -> ir.Value:
    """Transpose a tensor [..., heads, steps, size] to [..., steps, heads, size], or back."""
    return transpose(build, rows, [0, 2, 1, 3] if is_flat else [1, 0, 2])


def state_after(build: Builder, state: ir.Value, whole: ir.Value | None, drive: ir.Value) -> ir.Value:
    """Return ``state * whole + drive``, the matrix after a block."""
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
    """Return an object that writes the products of a block if each key has its own decays.

    Blocks are merged in pairs, from single steps up to ``length`` steps, which must be a power of 2 (see this module's docstring).
    All operands are [..., heads, steps, size].
    """
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

    def dot(left: ir.Value, right: ir.Value, last: int) -> ir.Value:
        return reduce(build, "ReduceSum", build.op("Mul", left, right), [last], True)  # faster than MatMuls with 1 by 1 results

    scores: ir.Value | None = None
    if queries is not None:
        scores, queries = dot(queries, keys, axis + 1), build.op("Mul", queries, decays)
    ends, reach = decays, 1
    while reach < length:
        first, second = halves(ends, 1, size)
        if queries is not None and scores is not None:
            early, late = halves(keys, reach, size)[0], halves(queries, reach, size)[1]
            turned = [*range(axis + 2), axis + 3, axis + 2]
            low = dot(late, early, axis + 3) if reach == 1 else build.op("MatMul", late, transpose(build, early, turned))
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


def _transposed(build: Builder, rows: ir.Value, is_flat: bool) -> ir.Value:
    return transpose(build, rows, [0, 1, 3, 2] if is_flat else [0, 2, 1])


def _size(rows: ir.Value) -> int:
    """Return the size of the last axis of ``rows``; 0 if it is unknown."""
    size = None if rows.shape is None else rows.shape.dims[-1]
    return size if isinstance(size, int) else 0
