"""Products of factors for all steps as rows ``[steps, heads, size]``; what is read, and the state, from and to their own axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_ir as ir

from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.values import const_array
from rewrites.ops.versions import concat, reshape, shape_of, slice_axis, squeeze, transpose, unsqueeze
from rewrites.recurrences.outer_products.matrix_state import MatrixState
from rewrites.recurrences.outer_products.terms import Labels, Product

__all__ = ["HeadRows"]

_END = 2**63 - 1


@dataclass(frozen=True)
class HeadRows:
    """Of the axes of ``found``, one of the heads may have a size that is not known. ``dtype``: of its numbers."""

    found: MatrixState
    stacks: Stacks
    dtype: np.dtype

    @property
    def key(self) -> tuple[int, ...]:
        """The axis of the keys."""
        return () if self.found.key is None else (self.found.key,)

    def size(self, labels: Sequence[int]) -> int:
        """Return the product of the sizes of ``labels``; -1 where one is not known."""
        sizes = [self.found.axes.size(label) for label in labels]
        known = [size for size in sizes if isinstance(size, int)]
        return prod(known) if len(known) == len(sizes) else -1

    def rows(self, b: Builder, whole: ir.Value, product: Product, along: tuple[int, ...], *, full: bool = False) -> ir.Value:
        """Return ``whole``, what is the same as ``product`` of all steps on axes for all labels, as rows, in the order of steps.

        ``full``: for all heads, though they share it.
        """
        heads = self.found.heads
        own = [label for label in heads if label in product.named]
        repeated = {label for label in along if label not in product.named}
        repeated |= {label for label in heads if (own or full) and label not in own}
        is_stack = any(self.stacks.get(factor.value).batched for factor in product.factors)
        if repeated or not is_stack:
            one = b.const([1])
            sizes = [self._size(b, label) if label in repeated else one for label in (*heads, *along)]
            whole = b.op("Expand", whole, concat(b, [one if is_stack else self.stacks.steps, *sizes], 0))
        if self.stacks.backwards:
            whole = slice_axis(b, whole, 0, -1, -_END, -1)
        return reshape(b, whole, [0, self.size(heads) if own or full else 1, self.size(along)])

    def constant(self, decay: Product) -> np.ndarray | None:
        """Return ``decay`` by head where it is the same number, at most 1, in each step; None where it is not."""
        whole = np.full([1] * len(self.found.heads), decay.number)
        for factor in decay.factors:
            operand = self.stacks.get(factor.value)
            array = None if operand.batched else const_array(operand.value)
            if array is None or any(label not in self.found.heads for label in factor.named):
                return None
            named = [label for label in factor.labels if label is not None]
            array = array.reshape([size for size, label in zip(array.shape, factor.labels, strict=True) if label is not None])
            order = sorted(range(len(named)), key=lambda axis: self.found.heads.index(named[axis]))
            array = array.transpose(order)
            sizes = iter(array.shape)
            whole = whole * array.reshape([next(sizes) if label in named else 1 for label in self.found.heads])
        known = [self.found.axes.size(label) for label in self.found.heads]
        if whole.size == 1:
            return whole.reshape(-1)
        sizes_of_all = [size for size in known if isinstance(size, int)]
        return np.broadcast_to(whole, sizes_of_all).reshape(-1) if len(sizes_of_all) == len(known) else None

    def unpacked(self, b: Builder, read: ir.Value, labels: Labels) -> ir.Value:
        """Return rows ``[steps, heads, values]``, in the order of steps, as ``[steps, *labels]`` in the order of the stacks."""
        own = (*self.found.heads, *self.found.values)
        whole = reshape(b, read, [0, *(self.size([label]) for label in own)])
        whole = transpose(b, whole, [0, *(1 + own.index(label) for label in labels if label is not None)])
        whole = unsqueeze(b, whole, [1 + axis for axis, label in enumerate(labels) if label is None])
        return slice_axis(b, whole, 0, -1, -_END, -1) if self.stacks.backwards else whole

    def state(self, b: Builder) -> ir.Value:
        """Return the initial state as ``[heads, keys, values]``."""
        initial, labels = self.found.state.initial, self.found.labels
        named = [label for label in labels if label is not None]
        initial = squeeze(b, initial, [axis for axis, label in enumerate(labels) if label is None])
        initial = transpose(b, initial, [named.index(label) for label in self._of_state()])
        return reshape(b, initial, [self.size(self.found.heads), self.size(self.key), self.size(self.found.values)])

    def unpacked_state(self, b: Builder, packed: ir.Value) -> ir.Value:
        """Return ``[heads, keys, values]`` with the axes of the state."""
        own, labels = self._of_state(), self.found.labels
        whole = reshape(b, packed, [self.size([label]) for label in own])
        whole = transpose(b, whole, [own.index(label) for label in labels if label is not None])
        return unsqueeze(b, whole, [axis for axis, label in enumerate(labels) if label is None])

    def _of_state(self) -> tuple[int, ...]:
        return (*self.found.heads, *self.key, *self.found.values)

    def _size(self, b: Builder, label: int) -> ir.Value:
        known = self.found.axes.size(label)
        return b.const([known]) if isinstance(known, int) else shape_of(b, self.found.state.initial, self.found.labels.index(label))
