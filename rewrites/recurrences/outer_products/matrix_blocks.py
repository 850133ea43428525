"""Compute a matrix state that accumulates outer products for all steps, in blocks of steps.

There are two layouts. The first is a Scan over blocks, whose state is the matrix. The second, the flat layout, computes everything
that does not depend on the matrix for all blocks at once. Then a small Scan computes the matrix before each block. If there are few
blocks, one more product of matrices replaces this Scan.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.values import static_dims
from rewrites.ops.versions import concat, reshape, slice_axis, transpose
from rewrites.recurrences.outer_products.block_products import (
    Products,
    by_step,
    constant_weights,
    exponent_weights,
    key_products,
    product_weights,
    state_after,
)
from rewrites.scans.blocks import BlockCut, reshape_first_axes, scan_over_blocks

__all__ = ["MatrixBlocks"]

_FEW_PRODUCTS = 5 << 20
"""The largest number of multiplications for which one product is faster than a Scan over blocks."""


@dataclass(frozen=True)
class MatrixBlocks:
    """The operands of a matrix state, as rows [steps, heads, size], and their layout in blocks.

    Args:
        queries: The queries of each step; None if only the last matrix is read.
        decays: The decays of each step, or their exponents if ``are_exponents``; None if all steps have the same decay.
        by_key: True if each key has its own decays. In this case, ``keys`` must have a row for every head.
        constant: The decay of each head if ``decays`` is None; None if nothing decays.
        initial: The initial matrix, [heads, keys, values].
        cut: How the steps are cut into blocks.
        is_flat: True to use the flat layout.
    """

    keys: ir.Value
    values: ir.Value
    queries: ir.Value | None
    decays: ir.Value | None
    are_exponents: bool
    by_key: bool
    constant: np.ndarray | None
    initial: ir.Value
    cut: BlockCut
    is_flat: bool
    dtype: np.dtype

    def all_steps(self) -> tuple[ir.Value | None, ir.Value, list[ir.Node]]:
        """Write the nodes for all steps. Return the products with queries, the last matrix, and the new loops.

        The products are [steps, heads, values], or None if there are no queries.
        """
        build, initial, names = self.cut.build, self.initial, ("keys", "values", "queries", "decays")
        blocks = {name: self._blocks_of(rows, name) for name in names if (rows := getattr(self, name)) is not None}
        if self.cut.steps != self.cut.length:
            return self._all_blocks_at_once(blocks) if self.is_flat else self._loop_over_blocks(blocks)
        alone = {
            name: reshape(build, block, [dim if isinstance(dim, int) else -1 for dim in block.shape.dims[1:]])
            for name, block in blocks.items()
            if block.shape is not None
        }
        products = self._products(build, alone, is_flat=False)
        return products.read(initial) if self.queries is not None else None, products.after(initial), []

    def _loop_over_blocks(self, blocks: dict[str, ir.Value]) -> tuple[ir.Value | None, ir.Value, list[ir.Node]]:
        def step(inside: Builder, state: ir.Value, *rows: ir.Value) -> tuple[ir.Value, Sequence[ir.Value]]:
            products = self._products(inside, dict(zip(blocks, rows, strict=True)), is_flat=False)
            read = [products.read(state)] if self.queries is not None else []
            return products.after(state), read

        last, *stacks = scan_over_blocks(self.cut.build, self.initial, list(blocks.values()), step, self._count(), "block")
        return self._joined(stacks[0]) if stacks else None, last, _loops(last)

    def _all_blocks_at_once(self, blocks: dict[str, ir.Value]) -> tuple[ir.Value | None, ir.Value, list[ir.Node]]:
        build, initial, reads = self.cut.build, self.initial, self.queries is not None
        products = self._products(build, blocks, is_flat=True)
        drives, count, dims, whole = products.drive(), self._count(), static_dims(initial), products.weights.whole
        if count is not None and dims is not None and count * count * prod(dims) <= _FEW_PRODUCTS and not self.by_key:
            before, last = self._between(drives, whole, count)
            return None if before is None else self._joined(products.read(before)), last, []
        stacks = [drives, whole] if self.decays is not None and whole is not None else [drives]

        def step(inside: Builder, state: ir.Value, drive: ir.Value, *factor: ir.Value) -> tuple[ir.Value, Sequence[ir.Value]]:
            after = state_after(inside, state, factor[0] if factor else whole, drive)
            return after, [inside.op("Identity", state)] if reads else []

        last, *states = scan_over_blocks(build, initial, stacks, step, count, "block")
        return self._joined(products.read(states[0])) if reads else None, last, _loops(last)

    def _between(self, drives: ir.Value, whole: ir.Value | None, blocks: int) -> tuple[ir.Value | None, ir.Value]:
        """Compute the matrices between blocks by one product of matrices.

        Return the matrix before each block (None without queries), and the matrix after the last block.

        Args:
            drives: What each block adds to the matrix, [blocks, heads, keys, values].
            whole: The decay over each block, [blocks, heads, 1, 1], if it is not constant.
        """
        build, initial, dtype = self.cut.build, self.initial, self.dtype
        sides = [] if initial.shape is None else [dim if isinstance(dim, int) else -1 for dim in initial.shape.dims[1:]]
        if self.decays is not None and whole is not None:
            weights = product_weights(build, reshape(build, whole, [0, 0, 1]), blocks, dtype, is_flat=False)
        else:
            constant = self.constant
            power = None if constant is None else constant.astype(np.float64) ** self.cut.length
            weights = constant_weights(build, power, blocks, dtype)
        rows = reshape(build, transpose(build, drives, [1, 0, 2, 3]), [0, blocks, -1])
        first = reshape(build, initial, [0, 1, -1])
        kept = first if weights.before is None else build.op("Mul", weights.before, first)
        after = build.op("Add", build.op("MatMul", weights.within, rows), kept)
        last = reshape(build, slice_axis(build, after, 1, blocks - 1, blocks), [0, *sides])
        if self.queries is None:
            return None, last
        before = concat(build, [first, slice_axis(build, after, 1, 0, blocks - 1)], 1)
        return transpose(build, reshape(build, before, [0, blocks, *sides]), [1, 0, 2, 3]), last

    def _products(self, build: Builder, rows: dict[str, ir.Value], *, is_flat: bool) -> Products:
        """Return an object that writes the products of one block, or of all blocks if ``is_flat``.

        ``rows``: keys, values, queries and decays by name, [steps, heads, size] each, or [blocks, steps, heads, size] if
        ``is_flat``.
        """
        keys, values = (by_step(build, rows[name], is_flat) for name in ("keys", "values"))
        queries = by_step(build, rows["queries"], is_flat) if "queries" in rows else None
        decays, length = rows.get("decays"), self.cut.length
        if decays is not None and self.by_key:
            decays = by_step(build, decays, is_flat)
            return key_products(build, keys, values, queries, decays, length, self.dtype, is_flat=is_flat)
        if decays is None:
            weights = constant_weights(build, self.constant, length, self.dtype)
        else:
            write = exponent_weights if self.are_exponents else product_weights
            weights = write(build, decays, length, self.dtype, is_flat=is_flat)
        return Products(build, keys, values, queries, weights, is_flat)

    def _count(self) -> int | None:
        return self.cut.blocks if isinstance(self.cut.steps, int) else None

    def _blocks_of(self, rows: ir.Value, name: str) -> ir.Value:
        """Reshape rows [steps, heads, size] to [blocks, length, heads, size].

        The last block is padded with steps that do not change the matrix. ``name``: "keys", "values", "queries" or "decays".
        """
        neutral = 1 if name == "decays" and not self.are_exponents else 0
        padded = self.cut.pad(rows, np.array(neutral, self.dtype))
        blocks = reshape_first_axes(self.cut.build, padded, [self.cut.blocks, self.cut.length], 1, rows)
        dims = [None, None] if rows.shape is None else [dim if isinstance(dim, int) else None for dim in rows.shape.dims[1:]]
        if self._count() is None and dims[0] is None:
            blocks.shape = ir.Shape([None, self.cut.length, *dims])
        return blocks

    def _joined(self, stack: ir.Value) -> ir.Value:
        """Reshape a tensor [blocks, length, heads, size] to [steps, heads, size], without the padding."""
        return self.cut.trim(reshape_first_axes(self.cut.build, stack, [-1], 2, stack))


def _loops(last: ir.Value) -> list[ir.Node]:
    scan = last.producer()
    return [] if scan is None else [scan]
