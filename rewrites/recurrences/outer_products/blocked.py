"""A matrix that takes up outer products, for all steps: block by block, as products of matrices.

Blocks are the steps of a Scan whose state is the matrix; or all that does not need the matrix is done for all blocks side by side,
and a Scan, or for a few blocks one more product, has the matrices before each block.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import starmap
from math import prod

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.dims import without_axis
from rewrites.graph.marks import BLOCKS
from rewrites.graph.values import static_dims
from rewrites.loops import ScanInput, ScanOutput, State, make_scan
from rewrites.ops.versions import concat, reshape, slice_axis, transpose
from rewrites.recurrences.outer_products.block_products import Products
from rewrites.recurrences.outer_products.block_states import states_between
from rewrites.recurrences.outer_products.block_weights import constant_weights, exponent_weights, product_weights
from rewrites.recurrences.outer_products.key_products import KeyProducts, key_products

__all__ = ["Blocked", "Given"]

_END = 2**63 - 1
_FEW_PRODUCTS = 5 << 20
"""For which one product is faster than a Scan over blocks."""


@dataclass(frozen=True)
class Given:
    """What comes to the matrix, as rows [steps, heads, size]; ``initial`` [heads, keys, values].

    ``decays``: of each step, or their exponents where ``are_exponents``; else ``constant``, for each head, or None where nothing
    decays. ``by_key``: whether each key has decays of its own; keys then have all heads. ``queries``: None where only the last
    matrix is of use.
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
class Blocked:
    """Writes to ``build``. ``steps``: how many there are, as it is known, or as a tensor of one number; ``length``: of a block.

    ``is_flat``: whether blocks are side by side.
    """

    build: Builder
    steps: int | ir.Value
    length: int
    is_flat: bool
    dtype: np.dtype

    def all_steps(self, given: Given) -> tuple[ir.Value | None, ir.Value, list[ir.Node]]:
        """Return what is read after each step [steps, heads, values], the last matrix, and the loops made."""
        names = ("keys", "values", "queries", "decays")
        cut = {name: self._cut(rows, name, given) for name in names if (rows := getattr(given, name)) is not None}
        if self.steps == self.length:
            only = self.build
            products = self._products(given, {name: _without_blocks(only, one) for name, one in cut.items()}, only)
            read = None
            if given.queries is not None:
                read = self._by_step(only, only.op("Add", products.read_within(), products.read_before(given.initial)), False)
            return read, _after(only, given.initial, products.whole, products.taken_up()), []
        return (self._side_by_side if self.is_flat else self._one_by_one)(given, cut)

    def _one_by_one(self, given: Given, cut: dict[str, ir.Value]) -> tuple[ir.Value | None, ir.Value, list[ir.Node]]:
        inside = self.build.another()
        state, *rows = (self._inner(one, axis) for one, axis in [(given.initial, None), *((one, 0) for one in cut.values())])
        products = self._products(given, dict(zip(cut, rows, strict=True)), inside)
        reads = []
        if given.queries is not None:
            whole = inside.op("Add", products.read_within(), products.read_before(state))
            reads.append(self._by_step(inside, whole, False))
        after = _after(inside, state, products.whole, products.taken_up())
        scan = self._scan(inside, State(given.initial, state, after, None), list(cut.values()), rows, reads)
        read = self._joined(scan.outputs[1], reads[0]) if reads else None
        return read, scan.outputs[0], [scan]

    def _side_by_side(self, given: Given, cut: dict[str, ir.Value]) -> tuple[ir.Value | None, ir.Value, list[ir.Node]]:
        build, inside = self.build, self.build.another()
        products = self._products(given, cut, build)
        taken, blocks = products.taken_up(), self._blocks()
        dims = static_dims(given.initial)
        if blocks is not None and dims is not None and blocks * blocks * prod(dims) <= _FEW_PRODUCTS and not given.by_key:
            power = None if given.constant is None else given.constant.astype(np.float64) ** self.length
            alike, has_reads = power if given.decays is None else products.whole, given.queries is not None
            between, last = states_between(build, taken, given.initial, alike, blocks, self.dtype, has_reads=has_reads)
            return None if between is None else self._read(products, between), last, []
        stacks = [taken] if given.decays is None or products.whole is None else [taken, products.whole]
        state, *rows = (self._inner(one, axis) for one, axis in [(given.initial, None), *((one, 0) for one in stacks)])
        whole = rows[1] if len(rows) > 1 else products.whole
        after = _after(inside, state, whole, rows[0])
        before = [inside.op("Identity", state)] if given.queries is not None else []
        scan = self._scan(inside, State(given.initial, state, after, None), stacks, rows, before)
        read = None
        if before:
            scan.outputs[1].shape = None if state.shape is None else ir.Shape([self._blocks(), *state.shape.dims])
            read = self._read(products, scan.outputs[1])
        return read, scan.outputs[0], [scan]

    def _read(self, products: Products | KeyProducts, before: ir.Value) -> ir.Value:
        """Return what is read after each step of blocks side by side."""
        made = self.build.op("Add", products.read_within(), products.read_before(before))
        return self._joined(self._by_step(self.build, made, True), None)

    def _products(self, given: Given, rows: dict[str, ir.Value], build: Builder) -> Products | KeyProducts:
        """Return the products of ``rows``, [..., steps, heads, size] each, with one axis in front where blocks lie side by side."""
        is_flat = self.is_flat and self.steps != self.length
        keys, values = (self._by_step(build, rows[name], is_flat) for name in ("keys", "values"))
        queries = self._by_step(build, rows["queries"], is_flat) if "queries" in rows else None
        decays = rows.get("decays")
        if decays is not None and given.by_key:
            alike = self._by_step(build, decays, is_flat)
            return key_products(build, keys, values, queries, alike, self.length, self.dtype, is_flat=is_flat)
        if decays is None:
            weights = constant_weights(build, given.constant, self.length, self.dtype)
        else:
            write = exponent_weights if given.are_exponents else product_weights
            weights = write(build, decays, self.length, self.dtype, is_flat=is_flat)
        return Products(build, keys, values, queries, weights, is_flat)

    def _scan(
        self, inside: Builder, state: State, stacks: Sequence[ir.Value], rows: Sequence[ir.Value], made: Sequence[ir.Value]
    ) -> ir.Node:
        names = self.build.names
        body = ir.Graph([], [], nodes=inside.nodes, name=names.fresh("block"))
        inside.nodes = []
        outputs = [ScanOutput(one, None) for one in made]
        scan = make_scan(names, body, [state], list(starmap(ScanInput, zip(stacks, rows, strict=True))), outputs, "blocks")
        BLOCKS.put(scan, True)
        self.build.nodes.append(scan)
        return scan

    def _inner(self, outer: ir.Value, axis: int | None) -> ir.Value:
        """Return what a body sees of ``outer``."""
        shape = outer.shape if axis is None else without_axis(outer.shape, axis)
        return ir.Value(name=self.build.names.fresh("block_in"), type=outer.type, shape=shape)

    def _by_step(self, build: Builder, rows: ir.Value, is_flat: bool) -> ir.Value:
        """Return [..., heads, steps, size] as [..., steps, heads, size], and the other way round."""
        return transpose(build, rows, [0, 2, 1, 3] if is_flat else [1, 0, 2])

    def _blocks(self) -> int | None:
        return -(-self.steps // self.length) if isinstance(self.steps, int) else None

    def _cut(self, rows: ir.Value, name: str, given: Given) -> ir.Value:
        """Return rows [steps, heads, size] as [blocks, length, heads, size], with steps behind that change nothing."""
        build, blocks = self.build, self._blocks()
        neutral = 1 if name == "decays" and not given.are_exponents else 0
        dims = [None, None, None] if rows.shape is None else [dim if isinstance(dim, int) else None for dim in rows.shape.dims]
        if isinstance(self.steps, int):
            missing = build.const([0, 0, 0, (blocks or 0) * self.length - self.steps, 0, 0])
            is_whole = blocks is not None and blocks * self.length == self.steps
        else:
            length = build.const([self.length])
            odd = build.op("Mod", self.steps, length)
            none = build.const([0])
            left = build.op("Mod", build.op("Sub", length, odd), length)
            missing, is_whole = concat(build, [none, none, none, left, none, none], 0), False
        if not is_whole:
            rows = build.op("Pad", rows, missing, build.const(np.array(neutral, self.dtype)))
        if blocks is not None or dims[1] is not None:
            return reshape(build, rows, [blocks or -1, self.length, -1 if dims[1] is None else dims[1], dims[2] or 1])
        sizes = slice_axis(build, build.op("Shape", rows), 0, 1, _END)
        cut = build.op("Reshape", rows, concat(build, [build.const([-1, self.length]), sizes], 0))
        cut.shape = ir.Shape([None, self.length, *dims[1:]])
        return cut

    def _joined(self, stack: ir.Value, block: ir.Value | None) -> ir.Value:
        """Return [blocks, length, heads, size], of which a body made ``block``, as [steps, heads, size]."""
        build, blocks = self.build, self._blocks()
        if block is not None:
            stack.shape = None if block.shape is None else ir.Shape([blocks, *block.shape.dims])
        shape = stack.shape
        heads, size = (None, None) if shape is None else shape.dims[2:]
        if isinstance(heads, int):
            whole = reshape(build, stack, [-1, heads, size if isinstance(size, int) else 1])
        else:
            sizes = slice_axis(build, build.op("Shape", stack), 0, 2, _END)
            whole = build.op("Reshape", stack, concat(build, [build.const([-1]), sizes], 0))
        if isinstance(self.steps, int):
            return slice_axis(build, whole, 0, 0, self.steps) if (blocks or 0) * self.length > self.steps else whole
        return build.op("Slice", whole, build.const([0]), self.steps, build.const([0]))


def _without_blocks(build: Builder, one: ir.Value) -> ir.Value:
    dims = [] if one.shape is None else list(one.shape.dims[1:])
    return reshape(build, one, [-1 if not isinstance(dim, int) else dim for dim in dims])


def _after(build: Builder, state: ir.Value, whole: ir.Value | None, taken: ir.Value) -> ir.Value:
    return build.op("Add", state if whole is None else build.op("Mul", state, whole), taken)
