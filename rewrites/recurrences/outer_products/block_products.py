"""One block of steps of a matrix that takes up outer products, or many blocks side by side, as products of matrices.

    reads = (Q K^T * within) V + (Q S) * before        S' = whole * S + K^T (V * left)

Q, K and V are the queries, keys and values of the steps of a block, S the matrix before it; the weights are those of ``Weights``.
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.ops.versions import transpose
from rewrites.recurrences.outer_products.block_weights import Weights

__all__ = ["Products"]


@dataclass(frozen=True)
class Products:
    """Writes to ``build``, of ``keys``, ``values`` and ``queries`` [..., heads, steps, size]; ``is_flat``: blocks are in front.

    Where heads share one of these, or their decays, it has one head.
    """

    build: Builder
    keys: ir.Value
    values: ir.Value
    queries: ir.Value | None
    weights: Weights
    is_flat: bool

    @property
    def whole(self) -> ir.Value | None:
        """What the matrix is multiplied by in the whole block."""
        return self.weights.whole

    def taken_up(self) -> ir.Value:
        """Return what the steps of the block leave in the matrix."""
        build, left, keys, values = self.build, self.weights.left, self.keys, self.values
        if left is not None and _size(values) <= _size(keys):
            values = build.op("Mul", values, left)
        elif left is not None:
            keys = build.op("Mul", keys, left)
        return build.op("MatMul", self._turned(keys), values)

    def read_within(self) -> ir.Value:
        """Return what is read of what comes in the block itself, [..., heads, steps, values]."""
        assert self.queries is not None
        scores = self.build.op("MatMul", self.queries, self._turned(self.keys))
        return self.build.op("MatMul", self.build.op("Mul", scores, self.weights.within), self.values)

    def read_before(self, state: ir.Value) -> ir.Value:
        """Return what is read of ``state``, the matrix before the block."""
        build, before = self.build, self.weights.before
        assert self.queries is not None
        if before is None:
            return build.op("MatMul", self.queries, state)
        if _size(self.queries) < _size(self.values):
            return build.op("MatMul", build.op("Mul", self.queries, before), state)
        return build.op("Mul", build.op("MatMul", self.queries, state), before)

    def _turned(self, rows: ir.Value) -> ir.Value:
        return transpose(self.build, rows, [0, 1, 3, 2] if self.is_flat else [0, 2, 1])


def _size(rows: ir.Value) -> int:
    """Return how many numbers a head has in one step."""
    size = None if rows.shape is None else rows.shape.dims[-1]
    return size if isinstance(size, int) else 0
