"""Factors of products for all steps, side by side as LinearAttention wants them: ``[batch, steps, heads * size]``.

Axes whose size is known are heads, and the steps then need not move; one axis of a size that is not known is the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_ir as ir

from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.ops.versions import concat, reshape, shape_of, squeeze, transpose, unsqueeze
from rewrites.recurrences.outer_products.aligned import multiplied
from rewrites.recurrences.outer_products.matrix_state import MatrixState
from rewrites.recurrences.outer_products.terms import Labels, Product

__all__ = ["Packing"]


@dataclass(frozen=True)
class Packing:
    """How the axes of ``found`` are packed: ``batch`` (an axis of a size that is not known, or none) and ``heads``."""

    found: MatrixState
    stacks: Stacks
    batch: tuple[int, ...]
    heads: tuple[int, ...]

    @property
    def b(self) -> Builder:
        """Where nodes go."""
        return self.stacks.build

    @property
    def count(self) -> int:
        """The number of heads."""
        return self.size(self.heads)

    def size(self, labels: Sequence[int]) -> int:
        """Return the product of the sizes of ``labels``, all known."""
        return prod(int(self.found.axes.size(label) or 0) for label in labels)

    def product(self, product: Product, along: tuple[int, ...]) -> ir.Value:
        """Return ``product`` as ``[batch, steps, heads * along]``, repeated where it lacks an axis."""
        labels = (*self.batch, *self.heads, *along)
        whole = multiplied(self.stacks, product, labels, np.dtype(np.float32), alone=not self.batch)
        batched = any(self.stacks.get(factor.value).batched for factor in product.factors)
        if not batched or any(label not in product.named for label in labels):
            whole = self.b.op("Expand", whole, self._full(labels))
        return self.packed(whole, along)

    def packed(self, whole: ir.Value, along: tuple[int, ...]) -> ir.Value:
        """Return ``[steps, *batch, *heads, *along]``, with or without axes of size 1, as ``[batch, steps, heads * along]``."""
        width, whole = self.size((*self.heads, *along)), self.stacks.ordered(whole, False)
        if not self.batch:
            return reshape(self.b, whole, [1, -1, width])
        flat = reshape(self.b, whole, [0, 0, width]) if len(self.heads) + len(along) != 1 else whole
        return transpose(self.b, flat, [1, 0, 2])

    def unpacked(self, packed: ir.Value, labels: Labels) -> ir.Value:
        """Return ``[batch, steps, heads * values]`` as ``[steps, *labels]``."""
        own = (*self.batch, *self.heads, *self.found.values)
        order = [own.index(label) for label in labels if label is not None]
        if not self.batch and order == sorted(order):
            return self.stacks.ordered(
                reshape(self.b, packed, [-1, *(1 if one is None else self.size([one]) for one in labels)]), False
            )
        sizes = [self.size([label]) for label in own[len(self.batch) :]]
        if self.batch:
            whole = reshape(self.b, transpose(self.b, packed, [1, 0, 2]), [0, 0, *sizes])
        else:
            whole = reshape(self.b, packed, [-1, *sizes])
        whole = transpose(self.b, whole, [0, *(1 + axis for axis in order)])
        whole = unsqueeze(self.b, whole, [1 + axis for axis, label in enumerate(labels) if label is None])
        return self.stacks.ordered(whole, False)

    def state(self) -> ir.Value:
        """Return the initial state as ``[batch, heads, keys, values]``."""
        initial, labels = self.found.state.initial, self.found.labels
        named = [label for label in labels if label is not None]
        order = [named.index(label) for label in self._of_state()]
        if self.batch or order != sorted(order):
            initial = squeeze(self.b, initial, [axis for axis, label in enumerate(labels) if label is None])
            initial = transpose(self.b, initial, order)
        sizes = [self.count, self.size(self._key()), self.size(self.found.values)]
        return reshape(self.b, initial, [0 if self.batch else 1, *sizes])

    def unpacked_state(self, packed: ir.Value) -> ir.Value:
        """Return ``[batch, heads, keys, values]`` with the axes of the state."""
        own, labels = self._of_state(), self.found.labels
        sizes = [self.size([label]) for label in own[len(self.batch) :]]
        whole = reshape(self.b, packed, [0, *sizes] if self.batch else sizes)
        order = [own.index(label) for label in labels if label is not None]
        whole = transpose(self.b, whole, order)
        return unsqueeze(self.b, whole, [axis for axis, label in enumerate(labels) if label is None])

    def _key(self) -> tuple[int, ...]:
        return () if self.found.key is None else (self.found.key,)

    def _of_state(self) -> tuple[int, ...]:
        return (*self.batch, *self.heads, *self._key(), *self.found.values)

    def _full(self, labels: tuple[int, ...]) -> ir.Value:
        sizes = [self.b.const([self.size([label])]) for label in labels[len(self.batch) :]]
        initial = self.found.state.initial
        batch = [shape_of(self.b, initial, self.found.labels.index(label)) for label in self.batch]
        return concat(self.b, [self.stacks.steps, *batch, *sizes], 0)
