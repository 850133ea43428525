"""The products of a block of steps where each key of a head decays by numbers of its own.

Queries and keys of two steps then meet in a product with the decays in between, key by key. Blocks of 1, 2, 4, ... steps are put
together by two and two: queries of the later one are multiplied by its decays up to them, keys of the earlier one by its decays
after them, and a product of matrices has all pairs of those. Nothing is ever divided by decays.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.ops.versions import concat, reduce, reshape, slice_axis, transpose

__all__ = ["KeyProducts", "key_products"]


@dataclass(frozen=True)
class KeyProducts:
    """Writes to ``build``. ``scores`` [..., heads, t, s]: of what comes in step s, for what is read in step t.

    ``queries``, ``keys`` [..., heads, steps, keys]: multiplied by the decays up to them, and by those after them; ``whole``
    [..., heads, keys, 1]: by all.
    """

    build: Builder
    scores: ir.Value | None
    queries: ir.Value | None
    keys: ir.Value
    values: ir.Value
    whole: ir.Value
    is_flat: bool

    def taken_up(self) -> ir.Value:
        """Return what the steps of the block leave in the matrix."""
        return self.build.op("MatMul", transpose(self.build, self.keys, [0, 1, 3, 2] if self.is_flat else [0, 2, 1]), self.values)

    def read_within(self) -> ir.Value:
        """Return what is read of what comes in the block itself, [..., heads, steps, values]."""
        assert self.scores is not None
        return self.build.op("MatMul", self.scores, self.values)

    def read_before(self, state: ir.Value) -> ir.Value:
        """Return what is read of ``state``, the matrix before the block."""
        assert self.queries is not None
        return self.build.op("MatMul", self.queries, state)


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
) -> KeyProducts:
    """Put blocks together until they have ``length`` steps, a power of 2; all are [..., heads, steps, size]."""
    front, size = [0, 0] if is_flat else [0], _last(keys)
    axis = len(front)
    one = build.const(np.array(1, dtype))

    def halves(value: ir.Value, rows: int, columns: int) -> tuple[ir.Value, ir.Value]:
        pairs = reshape(build, value, [*front, -1, 2, rows, columns])
        return slice_axis(build, pairs, axis + 1, 0, 1), slice_axis(build, pairs, axis + 1, 1, 2)

    def padded(value: ir.Value, where: int, before: int, after: int, fill: ir.Value | None = None) -> ir.Value:
        pads = [0] * (2 * (axis + 4))
        pads[where], pads[where + axis + 4] = before, after
        return build.op("Pad", value, build.const(pads), fill)

    def multiplied(rows: ir.Value, factors: ir.Value, reach: int) -> ir.Value:
        pairs = reshape(build, rows, [*front, -1, 2, reach, size])
        return reshape(build, build.op("Mul", pairs, factors), [*front, length, size])

    def met(one: ir.Value, other: ir.Value, last: int) -> ir.Value:
        return reduce(build, "ReduceSum", build.op("Mul", one, other), [last], True)  # faster than products of 1 by 1

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
            queries = multiplied(queries, padded(first, axis + 1, 1, 0, one), reach)
        keys = multiplied(keys, padded(second, axis + 1, 0, 1, one), reach)
        ends = reshape(build, build.op("Mul", first, second), [*front, -1, size])
        reach *= 2
    made = None if scores is None else reshape(build, scores, [*front, length, length])
    return KeyProducts(build, made, queries, keys, values, reshape(build, ends, [*front, size, 1]), is_flat)


def _last(rows: ir.Value) -> int:
    size = None if rows.shape is None else rows.shape.dims[-1]
    assert isinstance(size, int)
    return size
