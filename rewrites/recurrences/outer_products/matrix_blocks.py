"""A matrix that takes up outer products, for all steps: block by block, as products of matrices.

One layout is a Scan over blocks whose state is the matrix. The other computes all that does not need the matrix for all blocks side
by side; a Scan, or for a few blocks one more product, then has the matrices before each block.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.values import static_dims
from rewrites.ops.versions import concat, reshape, slice_axis, transpose
from rewrites.recurrences.outer_products.block_products import (
    KeyProducts,
    Products,
    constant_weights,
    exponent_weights,
    key_products,
    product_weights,
)
from rewrites.scans.blocks import BlockCut, scan_over_blocks

__all__ = ["MatrixBlocks", "MatrixRows"]

_END = 2**63 - 1
_FEW_PRODUCTS = 5 << 20
"""For which one product is faster than a Scan over blocks."""


@dataclass(frozen=True)
class MatrixRows:
    """The operands of the matrix, as rows [steps, heads, size].

    Args:
        queries: None if only the last matrix is of use.
        decays: The decays of each step, or their exponents if ``are_exponents``; else ``constant`` counts.
        by_key: Each key has decays of its own; keys then have all heads.
        constant: The decay of each head in all steps; None if nothing decays.
        initial: The first matrix, [heads, keys, values].
    """

    keys: ir.Value
    values: ir.Value
    queries: ir.Value | None
    decays: ir.Value | None
    are_exponents: bool
    by_key: bool
    constant: np.ndarray | None
    initial: ir.Value


@dataclass(frozen=True)
class MatrixBlocks:
    """The blocks of ``rows``, which lie side by side if they are ``is_flat``."""

    rows: MatrixRows
    cut: BlockCut
    is_flat: bool
    dtype: np.dtype

    def all_steps(self) -> tuple[ir.Value | None, ir.Value, list[ir.Node]]:
        """Return what is read after each step [steps, heads, values], the last matrix, and the new loops."""
        build, initial, names = self.cut.build, self.rows.initial, ("keys", "values", "queries", "decays")
        blocks = {name: self._blocks_of(rows, name) for name in names if (rows := getattr(self.rows, name)) is not None}
        if self.cut.steps != self.cut.length:
            return self._side_by_side(blocks) if self.is_flat else self._one_by_one(blocks)
        products = self._products(build, {name: _without_blocks(build, block) for name, block in blocks.items()}, is_flat=False)
        read = self._read_steps(build, products, initial, is_flat=False) if self.rows.queries is not None else None
        return read, _after(build, initial, products.whole, products.drive()), []

    def _one_by_one(self, blocks: dict[str, ir.Value]) -> tuple[ir.Value | None, ir.Value, list[ir.Node]]:
        reads = self.rows.queries is not None

        def step(inside: Builder, state: ir.Value, *rows: ir.Value) -> tuple[ir.Value, Sequence[ir.Value]]:
            products = self._products(inside, dict(zip(blocks, rows, strict=True)), is_flat=False)
            read = [self._read_steps(inside, products, state, is_flat=False)] if reads else []
            return _after(inside, state, products.whole, products.drive()), read

        last, *stacks = self._scan(list(blocks.values()), step)
        return self._joined(stacks[0]) if reads else None, last, _loops(last)

    def _side_by_side(self, blocks: dict[str, ir.Value]) -> tuple[ir.Value | None, ir.Value, list[ir.Node]]:
        build, initial, reads = self.cut.build, self.rows.initial, self.rows.queries is not None
        products = self._products(build, blocks, is_flat=True)
        drives, count, dims = products.drive(), self._count(), static_dims(initial)
        if count is not None and dims is not None and count * count * prod(dims) <= _FEW_PRODUCTS and not self.rows.by_key:
            before, last = self._between(drives, products.whole, count)
            return None if before is None else self._joined(self._read_steps(build, products, before, is_flat=True)), last, []
        varies = self.rows.decays is not None and products.whole is not None
        stacks = [drives, products.whole] if varies and products.whole is not None else [drives]

        def step(inside: Builder, state: ir.Value, drive: ir.Value, *whole: ir.Value) -> tuple[ir.Value, Sequence[ir.Value]]:
            after = _after(inside, state, whole[0] if whole else products.whole, drive)
            return after, [inside.op("Identity", state)] if reads else []

        last, *states = self._scan(stacks, step)
        read = self._joined(self._read_steps(build, products, states[0], is_flat=True)) if reads else None
        return read, last, _loops(last)

    def _scan(self, stacks: Sequence[ir.Value], step: Callable[..., tuple[ir.Value, Sequence[ir.Value]]]) -> tuple[ir.Value, ...]:
        return scan_over_blocks(self.cut.build, self.rows.initial, stacks, step, self._count(), "block")

    def _between(self, drives: ir.Value, whole: ir.Value | None, blocks: int) -> tuple[ir.Value | None, ir.Value]:
        """Return the matrices before each of a few blocks, if something reads them, and that after the last, by one product.

        Args:
            drives: What is left of each block, [blocks, heads, keys, values].
            whole: What the matrix is multiplied by in a block, [blocks, heads, 1, 1], if it is not constant.
        """
        build, initial, dtype = self.cut.build, self.rows.initial, self.dtype
        sides = [] if initial.shape is None else [dim if isinstance(dim, int) else -1 for dim in initial.shape.dims[1:]]
        if self.rows.decays is not None and whole is not None:
            weights = product_weights(build, reshape(build, whole, [0, 0, 1]), blocks, dtype, is_flat=False)
        else:
            constant = self.rows.constant
            power = None if constant is None else constant.astype(np.float64) ** self.cut.length
            weights = constant_weights(build, power, blocks, dtype)
        rows = reshape(build, transpose(build, drives, [1, 0, 2, 3]), [0, blocks, -1])
        first = reshape(build, initial, [0, 1, -1])
        kept = first if weights.before is None else build.op("Mul", weights.before, first)
        after = build.op("Add", build.op("MatMul", weights.within, rows), kept)
        last = reshape(build, slice_axis(build, after, 1, blocks - 1, blocks), [0, *sides])
        if self.rows.queries is None:
            return None, last
        before = concat(build, [first, slice_axis(build, after, 1, 0, blocks - 1)], 1)
        return transpose(build, reshape(build, before, [0, blocks, *sides]), [1, 0, 2, 3]), last

    def _products(self, build: Builder, rows: dict[str, ir.Value], *, is_flat: bool) -> Products | KeyProducts:
        """Return the products of ``rows``, [..., steps, heads, size] each, with one axis in front if ``is_flat``."""
        keys, values = (_by_step(build, rows[name], is_flat) for name in ("keys", "values"))
        queries = _by_step(build, rows["queries"], is_flat) if "queries" in rows else None
        decays, length = rows.get("decays"), self.cut.length
        if decays is not None and self.rows.by_key:
            by_step = _by_step(build, decays, is_flat)
            return key_products(build, keys, values, queries, by_step, length, self.dtype, is_flat=is_flat)
        if decays is None:
            weights = constant_weights(build, self.rows.constant, length, self.dtype)
        else:
            write = exponent_weights if self.rows.are_exponents else product_weights
            weights = write(build, decays, length, self.dtype, is_flat=is_flat)
        return Products(build, keys, values, queries, weights, is_flat)

    def _read_steps(self, build: Builder, products: Products | KeyProducts, before: ir.Value, *, is_flat: bool) -> ir.Value:
        """Return what is read after each step, [..., steps, heads, values]."""
        return _by_step(build, build.op("Add", products.read_within(), products.read_before(before)), is_flat)

    def _count(self) -> int | None:
        return self.cut.blocks if isinstance(self.cut.steps, int) else None

    def _blocks_of(self, rows: ir.Value, name: str) -> ir.Value:
        """Return rows [steps, heads, size] as [blocks, length, heads, size], with steps behind that change nothing."""
        build, length = self.cut.build, self.cut.length
        neutral = 1 if name == "decays" and not self.rows.are_exponents else 0
        dims = [None, None, None] if rows.shape is None else [dim if isinstance(dim, int) else None for dim in rows.shape.dims]
        rows = self.cut.pad(rows, np.array(neutral, self.dtype))
        if self._count() is not None or dims[1] is not None:
            return reshape(build, rows, [self.cut.blocks, length, -1 if dims[1] is None else dims[1], dims[2] or 1])
        sizes = slice_axis(build, build.op("Shape", rows), 0, 1, _END)
        blocks = build.op("Reshape", rows, concat(build, [build.const([-1, length]), sizes], 0))
        blocks.shape = ir.Shape([None, length, *dims[1:]])
        return blocks

    def _joined(self, stack: ir.Value) -> ir.Value:
        """Return [blocks, length, heads, size] as [steps, heads, size]."""
        build = self.cut.build
        heads, size = (None, None) if stack.shape is None else stack.shape.dims[2:]
        if isinstance(heads, int):
            return self.cut.trim(reshape(build, stack, [-1, heads, size if isinstance(size, int) else 1]))
        sizes = slice_axis(build, build.op("Shape", stack), 0, 2, _END)
        return self.cut.trim(build.op("Reshape", stack, concat(build, [build.const([-1]), sizes], 0)))


def _by_step(build: Builder, rows: ir.Value, is_flat: bool) -> ir.Value:
    """Return [..., heads, steps, size] as [..., steps, heads, size], and the other way round."""
    return transpose(build, rows, [0, 2, 1, 3] if is_flat else [1, 0, 2])


def _loops(last: ir.Value) -> list[ir.Node]:
    scan = last.producer()
    return [] if scan is None else [scan]


def _without_blocks(build: Builder, blocks: ir.Value) -> ir.Value:
    dims = [] if blocks.shape is None else list(blocks.shape.dims[1:])
    return reshape(build, blocks, [dim if isinstance(dim, int) else -1 for dim in dims])


def _after(build: Builder, state: ir.Value, whole: ir.Value | None, drive: ir.Value) -> ir.Value:
    return build.op("Add", state if whole is None else build.op("Mul", state, whole), drive)
