"""Reads small integer tensors as affine expressions of the step number, of dimensions and of outer integers.

Follows the operators that exporters use for indices, bounds and shapes. Other values are None, or a new symbol if it is one integer
computed outside the loop. Integers are treated as unbounded, but constants near the limits of their type are not followed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dataflow import Domain
from rewrites.analysis.induction.affine_expression import (
    INTEGERS,
    LARGEST,
    STEP,
    AffineExpression,
    Dim,
    at_least,
    constants,
    in_type,
    within,
)
from rewrites.graph.values import const_array, rank_of, static_dims

__all__ = ["Bounds", "IntegerDomain"]


@dataclass(frozen=True)
class Bounds:
    """The range of a Slice along one axis."""

    axis: int
    start: AffineExpression
    end: AffineExpression


class IntegerDomain(Domain[AffineExpression]):
    """The affine expressions of values, seen from a loop body; ``Integers`` adds the transfer functions.

    Args:
        opset: The opset of the model.
        body: The body, or None for outer values only.
        known: Expressions of body inputs.
        steps: The trip count.
        same_sizes: True if a named size in the body is loop-invariant.
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
        """Return the expression of the only element of ``value``, without axes, or None."""
        expression = self.of(value)
        return expression.reshaped(()) if expression is not None and expression.const.size == 1 else None

    def truth(self, value: ir.Value | None) -> bool | None:
        """Return True if all elements of a boolean are true in every step, False if all are false; None if neither is known."""
        if value is None or self._depth > self.deepest:
            return None
        if value not in self._truths:
            self._depth += 1
            self._truths[value] = self._decided(value)
            self._depth -= 1
        return self._truths[value]

    def _decided(self, value: ir.Value) -> bool | None:
        array = const_array(value)
        if array is not None and array.dtype == np.bool_ and array.size:
            return True if array.all() else None if array.any() else False
        node = value.producer()
        if node is None or node.domain != "":
            return None
        if node.op_type in ("Identity", "Squeeze", "Unsqueeze", "Reshape"):
            return self.truth(node.inputs[0])
        if node.op_type == "Not":
            inner = self.truth(node.inputs[0])
            return None if inner is None else not inner
        if node.op_type == "And":
            sides = [self.truth(side) for side in node.inputs]
            return True if sides == [True, True] else False if False in sides else None
        room = self.room(value)
        if room is None or (room.terms and room.exact_to is not None):
            return None
        if at_least(room, 1, self.steps):
            return True
        return False if at_least(-room, 0, self.steps) else None

    def room(self, value: ir.Value | None) -> AffineExpression | None:
        """Return an expression that is 1 or more exactly if a comparison of integers holds, or None."""
        node = value.producer() if value is not None else None
        if node is None or node.domain != "":
            return None
        if node.op_type in ("Identity", "Squeeze", "Unsqueeze", "Reshape") and node.inputs[0] is not None:
            return self.room(node.inputs[0]) if _elements(node.inputs[0]) == 1 else None
        if node.op_type == "Not":
            inner = self.room(node.inputs[0])
            return None if inner is None else AffineExpression.of(1) - inner
        if node.op_type not in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
            return None
        sides, has_equal = list(node.inputs), node.op_type.endswith("OrEqual")
        if node.op_type.startswith("Greater"):
            sides.reverse()
        # an integer is < 5.5 if it is < 6, and > 5.5 if it is > 5; it is <= 5.5 if it is <= 5, and >= 5.5 if it is >= 6
        low = self.of(sides[0]) or _whole(sides[0], np.ceil if has_equal else np.floor)
        high = self.of(sides[1]) or _whole(sides[1], np.floor if has_equal else np.ceil)
        return None if low is None or high is None else high - low + AffineExpression.of(1 if has_equal else 0)

    def read(self, value: ir.Value) -> AffineExpression | None:
        """Return the expression of ``value``, or None."""
        return self._exactly(self._expression(value))

    def _expression(self, value: ir.Value) -> AffineExpression | None:
        array = const_array(value)
        if array is not None:
            return constants(array)
        node = value.producer()
        expression = None if node is None else self.transferred(node)
        if node is not None and expression is not None and expression.const.size <= LARGEST:
            computed = node.op_type in ("Add", "Cast", "Mul", "Neg", "Sub")
            if not computed or in_type(expression, value.dtype):
                return expression
        inside = self.body is not None and value.graph is self.body
        if inside or value.dtype not in INTEGERS or static_dims(value) not in ((), (1,)):
            return None
        return AffineExpression.symbol(value, static_dims(value) or ())

    def transferred(self, node: ir.Node) -> AffineExpression | None:
        """Return the expression of the result of ``node``, or None if its operands do not fit."""
        try:
            return super().transferred(node)
        except ValueError:  # from numpy: after unknown operators, onnx does not detect the error
            return None

    def _exactly(self, expression: AffineExpression | None) -> AffineExpression | None:
        """Return ``expression`` as exact integers if the floats in its computation hold the values of all steps."""
        if expression is None or expression.exact_to is None or self.steps is None or self.steps.number is None:
            return expression
        is_held = not expression.terms.keys() - {STEP} and within(self.steps.number, expression.exact_to)
        return AffineExpression(expression.const, expression.terms) if is_held else expression

    def size_of(self, value: ir.Value, axis: int) -> AffineExpression | None:
        """Return one dimension of ``value``; None if it may change from step to step."""
        return None if value.shape is None else self.dim(value, axis)

    def bounds(self, node: ir.Node) -> list[Bounds] | None:
        """Return the ranges of a Slice with step 1, or None."""
        rank = None if node.inputs[0] is None else rank_of(node.inputs[0])
        operands = [self.operand(node, index) for index in (1, 2, 3)]
        starts, ends, axes = operands
        if (
            rank is None
            or starts is None
            or ends is None
            or any(operand is not None and operand.const.ndim != 1 for operand in operands)
        ):
            return None
        if len(node.inputs) > 3 and node.inputs[3] is not None and axes is None:
            return None
        steps = self.operand(node, 4)
        if len(node.inputs) > 4 and node.inputs[4] is not None and (steps is None or steps.terms or (steps.const != 1).any()):
            return None
        places = np.arange(starts.const.size) if axes is None else axes.numbers
        if places is None or not starts.shape == ends.shape == places.shape:
            return None
        return [
            Bounds(int(axis) % rank, starts.moved(partial(np.take, indices=i)), ends.moved(partial(np.take, indices=i)))
            for i, axis in enumerate(places)
        ]

    def dim(self, value: ir.Value, axis: int) -> AffineExpression | None:
        """Return one dimension of a value of known rank; None if it may change from step to step."""
        assert value.shape is not None
        dim = value.shape[axis]
        if isinstance(dim, int):
            return AffineExpression.of(dim)
        sliced = self._sliced(value, axis)
        if sliced is not None:
            return sliced
        if self.body is not None and value.graph is self.body and (dim.value is None or not self._same_sizes):
            return None
        return AffineExpression.symbol(Dim(dim.value if dim.value is not None else (id(value), axis), value, axis))

    def _sliced(self, value: ir.Value, axis: int) -> AffineExpression | None:
        """Return the number of elements of ``axis`` that a Slice reads, if all of them exist."""
        node = value.producer()
        source = node.inputs[0] if node is not None and node.op_type == "Slice" and node.domain == "" else None
        bounds = None if node is None or source is None or source.shape is None else self.bounds(node)
        if bounds is None or source is None:
            return None
        length = self.dim(source, axis)
        for cut in bounds:
            if cut.axis == axis:
                there = length is not None and at_least(cut.start, 0, self.steps) and at_least(length - cut.end, 0, self.steps)
                return cut.end - cut.start if there and at_least(cut.end - cut.start, 0, self.steps) else None
        return length


def _whole(value: ir.Value | None, rounded: np.ufunc) -> AffineExpression | None:
    """Return the integer next to a constant float."""
    array = const_array(value)
    return constants(rounded(array)) if array is not None and array.dtype.kind == "f" and array.size == 1 else None


def _elements(value: ir.Value) -> int | None:
    dims = static_dims(value)
    return None if dims is None else int(np.prod(dims, dtype=np.int64))
