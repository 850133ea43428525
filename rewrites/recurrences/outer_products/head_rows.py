"""Reshape keys, values, queries and decays of all steps to rows, and the results back.

``HeadRows`` writes rows ``[steps, heads, size]``, for blocks of steps. ``Packing`` writes rows ``[batch, steps, heads * size]``,
for LinearAttention. A matrix state may have several axes of independent matrices. ``Packing`` merges all such axes of known size
into the heads, so that the steps axis need not move. An axis of unknown size becomes the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.values import const_array
from rewrites.ops.versions import concat, reshape, reversed_if, shape_of, squeeze, transpose, unsqueeze
from rewrites.recurrences.outer_products.matrix_state import MatrixState
from rewrites.recurrences.outer_products.terms import Labels, Product, multiplied

__all__ = ["HeadRows", "Packing"]


@dataclass(frozen=True)
class HeadRows:
    """Writes keys, values, queries and decays of ``matrix`` as rows ``[steps, heads, size]``.

    One of the heads axes may have an unknown size.
    """

    matrix: MatrixState
    stacks: Stacks
    dtype: np.dtype

    def whole(self, product: Product, axes: tuple[int, ...]) -> ir.Value:
        """Return ``product`` for all steps, as a tensor that broadcasts to ``[steps, *heads, *axes]``.

        ``axes``: the labels of the key axis or the value axes.
        """
        return multiplied(self.stacks, product, (*self.matrix.heads, *axes), self.dtype, alone=False)

    def rows(self, b: Builder, whole: ir.Value, product: Product, axes: tuple[int, ...], *, full: bool = False) -> ir.Value:
        """Reshape ``whole`` to rows ``[steps, heads, size]`` in the order of steps.

        Args:
            whole: The result of ``self.whole(product, axes)``.
            full: True to repeat rows that all heads share for each head. Otherwise, such rows have a heads axis of size 1.
        """
        heads = self.matrix.heads
        own = [label for label in heads if label in product.named]
        repeated = {label for label in axes if label not in product.named}
        repeated |= {label for label in heads if (own or full) and label not in own}
        is_stack = any(self.stacks.get(factor.value).batched for factor in product.factors)
        if repeated or not is_stack:
            unit = b.const([1])
            sizes = [_size_of(b, self.matrix, label) if label in repeated else unit for label in (*heads, *axes)]
            whole = b.op("Expand", whole, concat(b, [unit if is_stack else self.stacks.steps, *sizes], 0))
        whole = reversed_if(b, whole, self.stacks.backwards)
        return reshape(b, whole, [0, self.matrix.size(heads) if own or full else 1, self.matrix.size(axes)])

    def constant(self, decay: Product) -> np.ndarray | None:
        """Return ``decay`` as an array with one number per head, or one number for all heads.

        Return None if ``decay`` is not the same constant in all steps.
        """
        heads = self.matrix.heads
        whole = np.full([1] * len(heads), decay.number)
        for factor in decay.factors:
            operand = self.stacks.get(factor.value)
            array = None if operand.batched else const_array(operand.value)
            if array is None or any(label not in heads for label in factor.named):
                return None
            named = [label for label in factor.labels if label is not None]
            array = array.reshape([size for size, label in zip(array.shape, factor.labels, strict=True) if label is not None])
            array = array.transpose(sorted(range(len(named)), key=lambda axis: heads.index(named[axis])))
            sizes = iter(array.shape)
            whole = whole * array.reshape([next(sizes) if label in named else 1 for label in heads])
        if whole.size == 1:
            return whole.reshape(-1)
        known = [self.matrix.size([label]) for label in heads]
        return None if -1 in known else np.broadcast_to(whole, known).reshape(-1)

    def unpacked(self, b: Builder, read: ir.Value, labels: Labels) -> ir.Value:
        """Reshape rows ``[steps, heads, values]`` to ``[steps, *labels]``.

        The rows are in the order of steps. The result is in the order of the stacks, which is reversed if the loop runs backwards.
        """
        own = (*self.matrix.heads, *self.matrix.values)
        whole = reshape(b, read, [0, *(self.matrix.size([label]) for label in own)])
        return reversed_if(b, _with_axes(b, whole, own, labels, 1), self.stacks.backwards)

    def state(self, b: Builder) -> ir.Value:
        """Return the initial state, reshaped to ``[heads, keys, values]``."""
        parts = (self.matrix.heads, self.matrix.key_axes, self.matrix.values)
        return reshape(b, _initial(b, self.matrix, [label for part in parts for label in part]), list(map(self.matrix.size, parts)))

    def unpacked_state(self, b: Builder, packed: ir.Value) -> ir.Value:
        """Reshape a tensor ``[heads, keys, values]`` to the axes of the state."""
        own = (*self.matrix.heads, *self.matrix.key_axes, *self.matrix.values)
        whole = reshape(b, packed, [self.matrix.size([label]) for label in own])
        return _with_axes(b, whole, own, self.matrix.labels, 0)


@dataclass(frozen=True)
class Packing:
    """Writes keys, values, queries and decays of ``matrix`` as operands of LinearAttention.

    ``stacks`` must hold their values for all steps. If a heads axis has an unknown size, it becomes the batch of LinearAttention.
    """

    matrix: MatrixState
    stacks: Stacks

    @property
    def batch(self) -> tuple[int, ...]:
        """A tuple with the label of the heads axis of unknown size; empty if all sizes are known."""
        return tuple(label for label in self.matrix.heads if self.matrix.size([label]) < 0)

    @property
    def heads(self) -> tuple[int, ...]:
        """The labels of the heads axes of known size."""
        return tuple(label for label in self.matrix.heads if label not in self.batch)

    @property
    def count(self) -> int:
        """The number of heads without the batch: the product of all known sizes of heads axes."""
        return self.matrix.size(self.heads)

    def product(self, product: Product, axes: tuple[int, ...]) -> ir.Value:
        """Return ``product`` for all steps, reshaped to ``[batch, steps, heads * axes]``.

        ``axes``: the labels of the key axis or of the value axes. If ``product`` lacks one of the result's axes, it is repeated
        along this axis.
        """
        b, labels = self.stacks.build, (*self.batch, *self.heads, *axes)
        whole = multiplied(self.stacks, product, labels, np.dtype(np.float32), alone=not self.batch)
        batched = any(self.stacks.get(factor.value).batched for factor in product.factors)
        if not batched or any(label not in product.named for label in labels):
            sizes = [b.const([self.matrix.size([label])]) for label in labels[len(self.batch) :]]
            batch = [_size_of(b, self.matrix, label) for label in self.batch]
            whole = b.op("Expand", whole, concat(b, [self.stacks.steps, *batch, *sizes], 0))
        width, whole = self.matrix.size((*self.heads, *axes)), self.stacks.ordered(whole, False)
        if not self.batch:
            return reshape(b, whole, [1, -1, width])
        flat = reshape(b, whole, [0, 0, width]) if len(self.heads) + len(axes) != 1 else whole
        return transpose(b, flat, [1, 0, 2])

    def unpacked(self, packed: ir.Value, labels: Labels) -> ir.Value:
        """Reshape a tensor ``[batch, steps, heads * values]`` to ``[steps, *labels]``."""
        b, own = self.stacks.build, (*self.batch, *self.heads, *self.matrix.values)
        order = [own.index(label) for label in labels if label is not None]
        if not self.batch and order == sorted(order):
            sizes = [1 if label is None else self.matrix.size([label]) for label in labels]
            return self.stacks.ordered(reshape(b, packed, [-1, *sizes]), False)
        sizes = [self.matrix.size([label]) for label in own[len(self.batch) :]]
        rows = transpose(b, packed, [1, 0, 2]) if self.batch else packed
        whole = reshape(b, rows, [0, 0, *sizes] if self.batch else [-1, *sizes])
        return self.stacks.ordered(_with_axes(b, whole, own, labels, 1), False)

    def state(self) -> ir.Value:
        """Return the initial state, reshaped to ``[batch, heads, keys, values]``."""
        b, initial, own = self.stacks.build, self.matrix.state.initial, self._of_state()
        if self.batch or [label for label in self.matrix.labels if label is not None] != list(own):
            initial = _initial(b, self.matrix, own)
        sizes = [self.count, self.matrix.size(self.matrix.key_axes), self.matrix.size(self.matrix.values)]
        return reshape(b, initial, [0 if self.batch else 1, *sizes])

    def unpacked_state(self, packed: ir.Value) -> ir.Value:
        """Reshape a tensor ``[batch, heads, keys, values]`` to the axes of the state."""
        b, own = self.stacks.build, self._of_state()
        sizes = [self.matrix.size([label]) for label in own[len(self.batch) :]]
        return _with_axes(b, reshape(b, packed, [0, *sizes] if self.batch else sizes), own, self.matrix.labels, 0)

    def _of_state(self) -> tuple[int, ...]:
        return (*self.batch, *self.heads, *self.matrix.key_axes, *self.matrix.values)


def _initial(b: Builder, matrix: MatrixState, order: Sequence[int]) -> ir.Value:
    """Return the initial state, without axes of size 1 and with its other axes transposed to ``order``."""
    named = [label for label in matrix.labels if label is not None]
    initial = squeeze(b, matrix.state.initial, [axis for axis, label in enumerate(matrix.labels) if label is None])
    return transpose(b, initial, [named.index(label) for label in order])


def _with_axes(b: Builder, whole: ir.Value, own: Sequence[int], labels: Labels, lead: int) -> ir.Value:
    """Transpose a tensor ``[*leading axes, *own]`` to ``[*leading axes, *labels]``.

    Args:
        own: The labels of the tensor's axes after the leading axes.
        labels: The labels in the new order. A None becomes an axis of size 1.
        lead: The number of leading axes. They do not change.
    """
    order = [lead + own.index(label) for label in labels if label is not None]
    whole = transpose(b, whole, [*range(lead), *order])
    return unsqueeze(b, whole, [lead + axis for axis, label in enumerate(labels) if label is None])


def _size_of(b: Builder, matrix: MatrixState, label: int) -> ir.Value:
    size = matrix.size([label])
    return b.const([size]) if size >= 0 else shape_of(b, matrix.state.initial, matrix.labels.index(label))
