"""Classes for tensors that are sums of products with named axes, as in Einsum.

For example, the next value of ``S[i,j]`` is ``a[i] S[i,j] + k[i] v[j]``. The name of an axis, such as i, is called its label. An
axis of size 1 has the label None. If a factor has a label that the tensor lacks, the tensor is the sum over this axis.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.fission.stacks import Stacks
from rewrites.graph.dims import same
from rewrites.graph.values import shape_dims
from rewrites.ops.versions import squeeze, transpose, unsqueeze

__all__ = ["Axes", "Factor", "Labels", "NotAProduct", "Product", "Tensor", "multiplied"]


Labels = tuple[int | None, ...]


class NotAProduct(Exception):
    """Raised if a value is not a sum of products."""


@dataclass(frozen=True)
class Factor:
    """A ``value`` with a label for each of its axes."""

    value: ir.Value
    labels: Labels

    @property
    def named(self) -> frozenset[int]:
        """The set of labels without None."""
        return frozenset(label for label in self.labels if label is not None)


@dataclass(frozen=True)
class Product:
    """The product of ``number`` and all ``factors``."""

    number: float
    factors: tuple[Factor, ...]

    @property
    def named(self) -> frozenset[int]:
        """The set of the labels of all factors, without None."""
        return frozenset(label for factor in self.factors for label in factor.named)


@dataclass(frozen=True)
class Tensor:
    """A sum of ``products``, as a tensor with the axes ``labels``."""

    labels: Labels
    products: tuple[Product, ...]


class Axes:
    """Stores all labels, the sizes of their axes, and which labels denote the same axis."""

    def __init__(self) -> None:
        self._sizes = list[ir.SymbolicDim | int | None]()
        self._same = list[int]()

    def factor(self, value: ir.Value) -> Tensor:
        """Return a Tensor that consists of the one factor ``value``, with a new label for each axis."""
        if value.shape is None:
            raise NotAProduct
        sizes = list(value.shape.dims)
        labels = tuple(None if size == 1 else self._new(size) for size in sizes)
        return Tensor(labels, (Product(1.0, (Factor(value, labels),)),))

    def _new(self, size: ir.SymbolicDim | int | None) -> int:
        self._sizes.append(size)
        self._same.append(len(self._same))
        return len(self._same) - 1

    def size(self, label: int) -> int | str | None:
        """Return the size of the axis ``label``: a number, a symbolic name, or None if it is unknown."""
        (dim,) = shape_dims(ir.Shape([self._sizes[self.of(label)]]))
        return dim

    def of(self, label: int) -> int:
        """Return the one label that represents all labels that ``unite`` has joined with ``label``."""
        while self._same[label] != label:
            label = self._same[label]
        return label

    def unite(self, first: int | None, second: int | None) -> int | None:
        """Record that the labels ``first`` and ``second`` denote the same axis. Return the label for both.

        Raise NotAProduct if the sizes of the two labels may differ. None stands for an axis of size 1, which broadcasts.
        """
        if first is None or second is None:
            return second if first is None else first
        first, second = self.of(first), self.of(second)
        if first != second:
            if not same(ir.Shape([self._sizes[first]]), ir.Shape([self._sizes[second]])):
                raise NotAProduct
            self._same[max(first, second)] = min(first, second)
        return min(first, second)

    def settled(self, tensor: Tensor) -> Tensor:
        """Return ``tensor`` with one label for each axis.

        If ``unite`` has recorded that several labels denote the same axis, one of them represents the axis. It replaces the others.
        """
        return _renamed(tensor, self.of)

    def copied(self, tensor: Tensor) -> Tensor:
        """Return a copy of ``tensor`` with a new label for each axis."""
        new = dict[int, int]()

        def renamed(label: int) -> int:
            label = self.of(label)
            if label not in new:
                new[label] = self._new(self._sizes[label])
            return new[label]

        return _renamed(tensor, renamed)

    def aligned(self, first: Labels, second: Labels) -> Labels:
        """Return the labels of the result if two operands with these labels broadcast with each other.

        For each pair of axes that broadcast with each other, record that their labels denote the same axis.
        """
        rank = max(len(first), len(second))
        pairs = zip(*((None,) * (rank - len(labels)) + labels for labels in (first, second)), strict=True)
        return tuple(self.unite(*pair) for pair in pairs)

    def times(self, first: Tensor, second: Tensor, labels: Labels) -> Tensor:
        """Return the product of two tensors, summed over all axes except ``labels``."""
        pairwise = (Product(a.number * b.number, (*a.factors, *b.factors)) for a in first.products for b in second.products)
        return self.summed(Tensor(labels, tuple(pairwise)), {*first.labels, *second.labels})

    def summed(self, tensor: Tensor, before: Iterable[int | None]) -> Tensor:
        """Return ``tensor`` after checking that it is a valid sum over axes.

        The axes summed over are those of ``before`` that ``tensor`` lacks. Raise NotAProduct if a product of ``tensor`` lacks one
        of them.
        """
        kept = {self.of(label) for label in tensor.labels if label is not None}
        gone = {self.of(label) for label in before if label is not None} - kept
        for product in tensor.products:
            if not gone <= {self.of(label) for label in product.named}:
                raise NotAProduct
        return tensor


def _renamed(tensor: Tensor, new: Callable[[int], int]) -> Tensor:
    def labels(old: Sequence[int | None]) -> Labels:
        return tuple(None if label is None else new(label) for label in old)

    products = (
        Product(product.number, tuple(Factor(factor.value, labels(factor.labels)) for factor in product.factors))
        for product in tensor.products
    )
    return Tensor(labels(tensor.labels), tuple(products))


def multiplied(stacks: Stacks, product: Product, labels: tuple[int, ...], dtype: np.dtype, *, alone: bool) -> ir.Value:
    """Return ``product`` for all steps, as a tensor [steps, *axes] that broadcasts to [steps, *labels].

    ``alone``: True if the result may have additional axes of size 1 when ``product`` has a single factor.
    """
    build, whole = stacks.build, None
    for factor in product.factors:
        rows = _aligned(stacks, factor, labels, alone=alone and len(product.factors) == 1)
        whole = rows if whole is None else build.op("Mul", whole, rows)
    if whole is None:
        return build.const(np.full([1] * (1 + len(labels)), product.number, dtype))
    return whole if product.number == 1 else build.op("Neg", whole)


def _aligned(stacks: Stacks, factor: Factor, labels: tuple[int, ...], *, alone: bool) -> ir.Value:
    build, operand, own = stacks.build, stacks.get(factor.value), list(factor.labels)
    whole = operand.value if operand.batched else unsqueeze(build, operand.value, [0])
    named = [label for label in own if label is not None]
    if len(own) == len(labels) and all(mine in (None, label) for mine, label in zip(own, labels, strict=True)):
        return whole
    if alone and operand.batched and named == list(labels):
        return whole
    whole = squeeze(build, whole, [1 + axis for axis, label in enumerate(own) if label is None])
    order = sorted(range(len(named)), key=lambda axis: labels.index(named[axis]))
    whole = transpose(build, whole, [0, *(1 + axis for axis in order)])
    return unsqueeze(build, whole, [1 + axis for axis, label in enumerate(labels) if label not in named])
