"""Tensors as sums of products whose axes have names, as Einsum has them: ``S[i,j]`` becomes ``a[i] S[i,j] + k[i] v[j]``.

A label names an axis of the product; an axis of size 1 has none. A label that is no axis of the tensor is summed over.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.graph.dims import same
from rewrites.graph.values import shape_dims

__all__ = ["Axes", "Factor", "Labels", "NotAProduct", "Product", "Tensor"]

Labels = tuple[int | None, ...]


class NotAProduct(Exception):
    """A value is no sum of products."""


@dataclass(frozen=True)
class Factor:
    """``value``, whose axes are ``labels``."""

    value: ir.Value
    labels: Labels

    @property
    def named(self) -> frozenset[int]:
        """The labels."""
        return frozenset(label for label in self.labels if label is not None)


@dataclass(frozen=True)
class Product:
    """``number`` times ``factors``."""

    number: float
    factors: tuple[Factor, ...]

    @property
    def named(self) -> frozenset[int]:
        """The labels of all factors."""
        return frozenset(label for factor in self.factors for label in factor.named)


@dataclass(frozen=True)
class Tensor:
    """The sum of ``products``; ``labels`` are its axes."""

    labels: Labels
    products: tuple[Product, ...]


class Axes:
    """Labels, the sizes that they stand for, and which are the same."""

    def __init__(self) -> None:
        self._sizes = list[ir.SymbolicDim | int | None]()
        self._same = list[int]()

    def factor(self, value: ir.Value) -> Tensor:
        """Return ``value`` as a tensor of its own, on new labels."""
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
        """Return what is known of the size of an axis."""
        (found,) = shape_dims(ir.Shape([self._sizes[self.of(label)]]))
        return found

    def of(self, label: int) -> int:
        """Return the label that stands for all that are the same as ``label``."""
        while self._same[label] != label:
            label = self._same[label]
        return label

    def unite(self, one: int | None, other: int | None) -> int | None:
        """Return the label of an axis along which operands are ``one`` and ``other``; raises NotAProduct where sizes may differ."""
        if one is None or other is None:
            return other if one is None else one
        one, other = self.of(one), self.of(other)
        if one != other:
            if not same(ir.Shape([self._sizes[one]]), ir.Shape([self._sizes[other]])):
                raise NotAProduct
            self._same[max(one, other)] = min(one, other)
        return min(one, other)

    def settled(self, tensor: Tensor) -> Tensor:
        """Return ``tensor`` with one label for each axis."""
        return _renamed(tensor, self.of)

    def copied(self, tensor: Tensor) -> Tensor:
        """Return ``tensor`` on labels of its own."""
        new = dict[int, int]()

        def renamed(label: int) -> int:
            label = self.of(label)
            if label not in new:
                new[label] = self._new(self._sizes[label])
            return new[label]

        return _renamed(tensor, renamed)

    def aligned(self, one: Labels, other: Labels) -> Labels:
        """Return the axes of what two operands broadcast to."""
        rank = max(len(one), len(other))
        pairs = zip(*((None,) * (rank - len(labels)) + labels for labels in (one, other)), strict=True)
        return tuple(self.unite(*pair) for pair in pairs)

    def times(self, one: Tensor, other: Tensor, labels: Labels) -> Tensor:
        """Return the product of two tensors, with ``labels`` for axes; other axes are summed over."""
        made = (Product(a.number * b.number, (*a.factors, *b.factors)) for a in one.products for b in other.products)
        return self.summed(Tensor(labels, tuple(made)), {*one.labels, *other.labels})

    def summed(self, tensor: Tensor, before: Iterable[int | None]) -> Tensor:
        """Return ``tensor``, of which the axes were ``before``; each product must have those that are summed over."""
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
