"""Describes small integer tensors by affine expressions of the step number and other integers.

It supports the operators with which exporters compute indices, bounds and shapes. If a value is unknown, its expression is None. A
single unknown integer that is computed outside the loop becomes a new symbol. Overflow is ignored. Therefore constants near
the limits of their type count as unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dataflow import Domain
from rewrites.analysis.induction.affine_expression import (
    INTEGERS,
    LARGEST,
    LARGEST_SIZE,
    STEP,
    AffineExpression,
    at_least,
    constant_expression,
    counts_exactly,
    fits_type,
)
from rewrites.graph.values import const_array, producer_of, rank_of, static_dims

__all__ = ["Bounds", "IntegerDomain"]

_COPIES = ("Identity", "Squeeze", "Unsqueeze", "Reshape")


@dataclass(frozen=True)
class Bounds:
    """The start and the end of a Slice along ``axis``."""

    axis: int
    start: AffineExpression
    end: AffineExpression


class IntegerDomain(Domain[AffineExpression]):
    """Computes the affine expressions of values in a loop body. The facts of this domain are expressions.

    The subclass ``Integers`` adds the transfer functions.

    Args:
        opset: The opset of the model.
        body: The body of the loop. None if only values outside of loops are analysed.
        known: The known expressions of inputs of the body.
        steps: The trip count, if known.
        same_sizes: True if a named dimension in the body has the same size in all steps.
    """

    def __init__(
        self,
        opset: int,
        body: ir.Graph | None = None,
        known: Mapping[ir.Value, AffineExpression] | None = None,
        steps: AffineExpression | None = None,
        same_sizes: bool = False,
    ) -> None:
        super().__init__(known)
        self._same_sizes = same_sizes
        self.opset, self.body, self.steps = opset, body, steps
        self._truths: dict[ir.Value, bool | None] = {}

    def scalar(self, value: ir.Value | None) -> AffineExpression | None:
        """Return the expression of ``value`` as a scalar.

        Return None if it is unknown or has several elements.
        """
        expression = self.of(value)
        return expression.reshaped(()) if expression is not None and expression.const.size == 1 else None

    def truth_in_all_steps(self, value: ir.Value | None) -> bool | None:
        """Return the truth value that all elements of the boolean ``value`` have in every step.

        Return None if no truth value is known to hold for all elements and steps.
        """
        if value is None or self._depth > self.deepest:
            return None
        if value not in self._truths:
            self._depth += 1
            self._truths[value] = self._infer_truth(value)
            self._depth -= 1
        return self._truths[value]

    def _infer_truth(self, value: ir.Value) -> bool | None:
        array = const_array(value)
        if array is not None and array.dtype == np.bool_ and array.size:
            return True if array.all() else None if array.any() else False
        node = producer_of(value)
        if node is not None and node.op_type in (*_COPIES, "Not", "And"):
            sides = [self.truth_in_all_steps(side) for side in (node.inputs if node.op_type == "And" else node.inputs[:1])]
            if node.op_type == "Not" and sides != [None]:
                return not sides[0]
            return False if False in sides else None if None in sides else True
        margin = self.positive_if_true(value)
        if margin is None or (margin.terms and margin.exact_to is not None):
            return None
        return True if at_least(margin, 1, self.steps) else False if at_least(-margin, 0, self.steps) else None

    def positive_if_true(self, value: ir.Value | None) -> AffineExpression | None:
        """Return an expression that is at least 1 if the comparison ``value`` is true, and at most 0 if not.

        For example, return ``y - x`` for ``x < y``, and ``y - x + 1`` for ``x <= y``. Return None if no such expression is known.
        """
        node = producer_of(value)
        if node is None:
            return None
        if node.op_type in _COPIES and node.inputs[0] is not None:
            return self.positive_if_true(node.inputs[0]) if _element_count(node.inputs[0]) == 1 else None
        if node.op_type == "Not":
            inner = self.positive_if_true(node.inputs[0])
            return None if inner is None else -inner + 1
        if node.op_type not in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
            return None
        sides, has_equal = list(node.inputs), node.op_type.endswith("OrEqual")
        if node.op_type.startswith("Greater"):
            sides.reverse()
        # an integer is < 5.5 if it is < 6, and > 5.5 if it is > 5; it is <= 5.5 if it is <= 5, and >= 5.5 if it is >= 6
        low = self.of(sides[0]) or _rounded_constant(sides[0], np.ceil if has_equal else np.floor)
        high = self.of(sides[1]) or _rounded_constant(sides[1], np.floor if has_equal else np.ceil)
        return None if low is None or high is None else high - low + int(has_equal)

    def read(self, value: ir.Value) -> AffineExpression | None:
        """Return the expression of ``value``, or None if it is unknown."""
        return self._without_limit_if_exact(self._expression(value))

    def _expression(self, value: ir.Value) -> AffineExpression | None:
        array = const_array(value)
        if array is not None:
            return constant_expression(array)
        node = value.producer()
        expression = None if node is None else self.transferred(node)
        if node is not None and expression is not None and expression.const.size <= LARGEST:
            computed = node.op_type in ("Add", "Cast", "Div", "Mul", "Neg", "Range", "Sub")
            if not computed or fits_type(expression, value.dtype):
                return expression
        inside = self.body is not None and value.graph is self.body
        if inside or value.dtype not in INTEGERS or static_dims(value) not in ((), (1,)):
            return None
        return AffineExpression.symbol(value, static_dims(value) or ())

    def transferred(self, node: ir.Node) -> AffineExpression | None:
        """Return the expression of the result of ``node``.

        Return None if it is unknown, or if the shapes of the operands do not fit each other.
        """
        try:
            return super().transferred(node)
        except ValueError:  # numpy rejects the shapes; onnx does not detect invalid shapes that follow unknown operators
            return None

    def _without_limit_if_exact(self, expression: AffineExpression | None) -> AffineExpression | None:
        """Remove the limit ``exact_to`` of ``expression`` if its floats are known to be exact in all steps.

        Otherwise, return ``expression`` unchanged.
        """
        if expression is None or expression.exact_to is None or self.steps is None or self.steps.number is None:
            return expression
        is_held = not expression.terms.keys() - {STEP} and counts_exactly(self.steps.number, expression.exact_to)
        return AffineExpression(expression.const, expression.terms) if is_held else expression

    def bounds(self, node: ir.Node) -> list[Bounds] | None:
        """Return the bounds of the Slice ``node`` along each of its axes.

        Return None if the bounds are unknown. The step must be 1, or so large that the Slice reads only the row at its start.
        """
        source, operands = node.inputs[0], [self.operand(node, index) for index in range(1, 5)]
        starts, ends, axes, steps = operands
        rank, is_there = None if source is None else rank_of(source), [value is not None for value in (*node.inputs, None, None)]
        if rank is None or starts is None or ends is None or is_there[3:5] != [axes is not None, steps is not None]:
            return None
        if any(operand is not None and operand.const.ndim != 1 for operand in operands[:3]):
            return None
        positions = np.arange(starts.const.size) if axes is None else axes.numbers
        strides = np.ones(starts.shape, np.int64) if steps is None else steps.numbers
        if positions is None or strides is None or not starts.shape == ends.shape == positions.shape == strides.shape:
            return None
        bounds = [Bounds(int(axis) % rank, starts.element(i), ends.element(i)) for i, axis in enumerate(positions)]
        dense = [self._dense(bound, int(stride)) for bound, stride in zip(bounds, strides, strict=True)]
        return [bound for bound in dense if bound is not None] if None not in dense else None

    def _dense(self, bound: Bounds, stride: int) -> Bounds | None:
        """Return bounds with step 1 that select the same rows, if the axis has a row at the start."""
        if stride == 1:
            return bound
        is_one_row = stride >= LARGEST_SIZE and at_least(bound.end - bound.start, 1, self.steps)
        return Bounds(bound.axis, bound.start, bound.start + 1) if is_one_row else None

    def size_of(self, value: ir.Value, axis: int) -> AffineExpression | None:
        """Return the size of ``value`` along ``axis``.

        Return None if the rank is unknown, or if the size may vary between steps.
        """
        if value.shape is None:
            return None
        dim, inside = value.shape[axis], self.body is not None and value.graph is self.body
        sliced = None if isinstance(dim, int) else self._sliced(value, axis)
        if sliced is not None:
            return sliced
        may_change = inside and not isinstance(dim, int) and (dim.value is None or not self._same_sizes)
        return None if may_change else AffineExpression.dim(value, axis)

    def _sliced(self, value: ir.Value, axis: int) -> AffineExpression | None:
        """Return the size along ``axis`` of ``value``, the result of a Slice.

        Return None if ``value`` is no result of a Slice, or if the bounds of the Slice are not known to lie within its source.
        """
        node = producer_of(value, "Slice")
        source = None if node is None else node.inputs[0]
        bounds = None if node is None or source is None or source.shape is None else self.bounds(node)
        if bounds is None or source is None:
            return None
        length = self.size_of(source, axis)
        for cut in bounds:
            if cut.axis == axis:
                parts = [cut.start, cut.end - cut.start] + ([] if length is None else [length - cut.end])
                return parts[1] if len(parts) == 3 and all(at_least(part, 0, self.steps) for part in parts) else None
        return length


def _rounded_constant(value: ir.Value | None, rounding: np.ufunc) -> AffineExpression | None:
    """Return the expression of a constant float after ``rounding`` (np.floor or np.ceil).

    Return None if ``value`` is not a constant with a single float element.
    """
    array = const_array(value)
    return constant_expression(rounding(array)) if array is not None and array.dtype.kind == "f" and array.size == 1 else None


def _element_count(value: ir.Value) -> int | None:
    dims = static_dims(value)
    return None if dims is None else int(np.prod(dims, dtype=np.int64))
