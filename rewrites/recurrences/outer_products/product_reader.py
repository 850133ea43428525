"""Read values of a body as sums of products. A factor is a state, or a value that depends on no state.

The reader follows Mul, MatMul, Gemm, Einsum, ReduceSum, Add, Sub, Neg, and operators that only move axes. A value that depends on
no state becomes one factor, and the nodes that compute it stay as they are. Only an outer product is split into its two factors.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import onnx_ir as ir

from rewrites.analysis.dependence import reads
from rewrites.graph.values import shape_dims, static_dims, through_identity
from rewrites.loops import ScanView
from rewrites.ops.element_moves import movement
from rewrites.ops.versions import axes_of, keepdims
from rewrites.recurrences.constants import ConstantReader
from rewrites.recurrences.outer_products.terms import Axes, Labels, NotAProduct, Product, Tensor

__all__ = ["ProductReader"]

_MOST_PRODUCTS, _MOST_FACTORS = 8, 16
_MOST_READ, _DEEPEST = 512, 32
_FREE_LETTERS = "0123456789"
"""Letters for the axes that an Einsum equation abbreviates by ``...``."""


class ProductReader:
    """Reads values of the body of ``loop`` as Tensors, which are sums of products.

    Args:
        varying: The values that depend on a state.
        known: The tensors of the varying values that were read so far.
        splits_products: True to split every Mul into its factors, not only outer products.
    """

    def __init__(self, loop: ScanView, varying: set[ir.Value], opset: int, splits_products: bool) -> None:
        self.axes, self.known = Axes(), dict[ir.Value, Tensor]()
        self._loop, self._varying, self._opset, self._splits_products = loop, varying, opset, splits_products
        self._constants, self._left, self._depth = ConstantReader(opset), _MOST_READ, 0

    def read(self, node: ir.Node) -> Tensor:
        """Return the output of ``node``, which depends on a state, as a Tensor.

        Raise NotAProduct if it is no sum of products.
        """
        if len(node.outputs) != 1:
            raise NotAProduct
        result = self._computed(node)
        if len(result.products) > _MOST_PRODUCTS or any(len(product.factors) > _MOST_FACTORS for product in result.products):
            raise NotAProduct
        return self.axes.settled(result)

    def of(self, value: ir.Value | None) -> Tensor:
        """Return ``value`` as a Tensor with new labels. Raise NotAProduct if it is no sum of products."""
        value = through_identity(value)
        self._left -= 1
        if value is None:
            raise NotAProduct
        if value in self.known:
            return self.axes.copied(self.known[value])
        if value in self._varying:
            raise NotAProduct
        node = value.producer()
        may_follow = self._left > 0 and self._depth < _DEEPEST
        if node is not None and node.graph is self._loop.body and len(node.outputs) == 1 and may_follow:
            self._depth += 1
            try:
                tensor = self._computed(node)
            except NotAProduct:
                return self.axes.factor(value)
            finally:
                self._depth -= 1
            if len(tensor.products) == 1 and (node.op_type != "Mul" or self._splits_products or _is_outer(tensor)):
                return tensor
        return self.axes.factor(value)

    def _computed(self, node: ir.Node) -> Tensor:
        inputs = [value for value in node.inputs if value is not None]
        is_free = not any(value in self._varying for value in reads(node))
        if node.domain != "" or not inputs:
            raise NotAProduct
        if node.op_type in ("Cast", "CastLike", "Identity") and inputs[0].dtype == node.outputs[0].dtype is not None:
            return self.of(inputs[0])
        if node.op_type == "Neg":
            return _scaled(self.of(inputs[0]), -1.0)
        if node.op_type in ("Add", "Sub") and not is_free:
            return self._added(node)
        if node.op_type == "Mul":
            first, second = (self.of(value) for value in inputs)
            return self.axes.times(first, second, self.axes.aligned(first.labels, second.labels))
        if node.op_type == "MatMul":
            first, second = (self.of(value) for value in inputs)
            return self._multiplied(first, second, is_free)
        if node.op_type == "Einsum" and len(inputs) > 1:
            return self._einsum(node, is_free)
        if node.op_type == "Gemm":
            return self._gemm(node, is_free)
        if node.op_type == "ReduceSum" and not is_free:
            return self._summed(node, self.of(inputs[0]))
        return self._moved(node, self.of(inputs[0]))

    def _added(self, node: ir.Node) -> Tensor:
        first, second = (self.of(value) for value in node.inputs)
        second = second if node.op_type == "Add" else _scaled(second, -1.0)
        return Tensor(self.axes.aligned(first.labels, second.labels), (*first.products, *second.products))

    def _multiplied(self, first: Tensor, second: Tensor, is_free: bool) -> Tensor:
        left = first.labels if len(first.labels) > 1 else (None, *first.labels)
        right = second.labels if len(second.labels) > 1 else (*second.labels, None)
        if not first.labels or not second.labels or (is_free and (left[-1], right[-2]) != (None, None)):
            raise NotAProduct
        if (left[-1] is None) != (right[-2] is None):
            raise NotAProduct
        self.axes.unite(left[-1], right[-2])
        labels = self.axes.aligned(left[:-2], right[:-2])
        labels += left[-2:-1] if len(first.labels) > 1 else ()
        labels += right[-1:] if len(second.labels) > 1 else ()
        return self.axes.times(first, second, labels)

    def _einsum(self, node: ir.Node, is_free: bool) -> Tensor:
        inputs = [self.of(value) for value in node.inputs]
        letters, result = _letters(node.attributes.get_string("equation", ""), [len(first.labels) for first in inputs])
        named = dict[str, int | None]()
        for letter, label in zip("".join(letters), chain.from_iterable(first.labels for first in inputs), strict=True):
            named[letter] = self.axes.unite(named.get(letter), label)
        if is_free and any(named[letter] is not None for letter in named.keys() - set(result)):
            raise NotAProduct
        whole = inputs[0]
        for second in inputs[1:]:
            whole = self.axes.times(whole, second, (*whole.labels, *second.labels))
        return self.axes.summed(replace(whole, labels=tuple(named[letter] for letter in result)), whole.labels)

    def _gemm(self, node: ir.Node, is_free: bool) -> Tensor:
        if any(node.attributes.get_float(name, 1.0) != 1 for name in ("alpha", "beta")):
            raise NotAProduct
        sides = [self.of(value) for value in node.inputs[:2]]
        turned = [node.attributes.get_int(name, 0) for name in ("transA", "transB")]
        first, second = (replace(side, labels=side.labels[::-1]) if way else side for side, way in zip(sides, turned, strict=True))
        result = self._multiplied(first, second, is_free)
        if len(node.inputs) < 3 or node.inputs[2] is None:
            return result
        if is_free:
            raise NotAProduct
        bias = self.of(node.inputs[2])
        return Tensor(self.axes.aligned(result.labels, bias.labels), (*result.products, *bias.products))

    def _summed(self, node: ir.Node, tensor: Tensor) -> Tensor:
        axes = axes_of(node, self._opset, len(tensor.labels))
        if not isinstance(axes, tuple) or not axes:
            raise NotAProduct
        kept: Labels = tuple(None if axis in axes else label for axis, label in enumerate(tensor.labels))
        if not keepdims(node):
            kept = tuple(label for axis, label in enumerate(tensor.labels) if axis not in axes)
        return self.axes.summed(replace(tensor, labels=kept), tensor.labels)

    def _moved(self, node: ir.Node, tensor: Tensor) -> Tensor:
        source = through_identity(node.inputs[0])
        if source is None or source.shape is None:
            raise NotAProduct
        if node.op_type == "Reshape":
            return replace(tensor, labels=_with_other_ones(tensor.labels, source, node.outputs[0]))
        dims = shape_dims(source.shape)
        result = movement(node, self._opset, dims, lambda index: self._constants.of(node.inputs[index]))
        if result is None or result.axes is None or result.changed_axes:
            raise NotAProduct
        lost = set(range(len(tensor.labels))) - {axis for axis in result.axes if axis is not None}
        if any(tensor.labels[axis] is not None for axis in lost):
            raise NotAProduct
        return replace(tensor, labels=tuple(None if axis is None else tensor.labels[axis] for axis in result.axes))


def _scaled(tensor: Tensor, number: float) -> Tensor:
    return replace(tensor, products=tuple(Product(product.number * number, product.factors) for product in tensor.products))


def _with_other_ones(labels: Labels, source: ir.Value, target: ir.Value) -> Labels:
    """Return the labels of ``target``, a Reshape of ``source`` that only adds or removes axes of size 1."""
    before, after = static_dims(source), static_dims(target)
    if before is None or after is None or [size for size in before if size != 1] != [size for size in after if size != 1]:
        raise NotAProduct
    named = iter([label for label, size in zip(labels, before, strict=True) if size != 1])
    return tuple(None if size == 1 else next(named) for size in after)


def _letters(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the letters of each operand of an Einsum, and the letters of its result.

    An ellipsis is replaced by new letters. ``ranks``: the rank of each operand.
    """
    sides, arrow, result = equation.replace(" ", "").partition("->")
    operands = sides.split(",")
    lacking = [rank - len(letters.replace("...", "")) for letters, rank in zip(operands, ranks, strict=True)]
    dots = _FREE_LETTERS[: max(0, *lacking)]
    operand_letters = [
        letters.replace("...", dots[len(dots) - count :]) if count >= 0 else letters
        for letters, count in zip(operands, lacking, strict=True)
    ]
    result = result.replace("...", dots)
    if not arrow or [len(letters) for letters in operand_letters] != list(ranks):
        raise NotAProduct
    if any(len(set(letters)) < len(letters) or "." in letters for letters in (*operand_letters, result)):
        raise NotAProduct
    return operand_letters, result


def _is_outer(tensor: Tensor) -> bool:
    """Return True if the product in ``tensor`` has two factors, each with an axis that the other lacks."""
    names = [factor.named for factor in tensor.products[0].factors]
    return any(first - second and second - first for first in names for second in names)
