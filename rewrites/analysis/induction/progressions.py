"""Finds progressions: vectors in which each element is an affine expression of its index.

The length may be unknown. For example (T is the length):

    Range(0, T, 1): index          T - 1 - Range(0, T, 1): T - 1 - index
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import onnx_ir as ir

from rewrites.analysis.dataflow import Domain
from rewrites.analysis.induction.affine_expression import AffineExpression
from rewrites.analysis.induction.integers import Integers

__all__ = ["INDEX", "Progression", "Progressions"]

INDEX: Final = "index"
"""The symbol of the index of an element."""

_HOLD_SIZES = frozenset({ir.DataType.INT32, ir.DataType.INT64, ir.DataType.FLOAT, ir.DataType.DOUBLE})


@dataclass(frozen=True)
class Progression:
    """A vector of integers that depend on their index.

    Args:
        element: The element at each index, as an expression of the symbol INDEX.
        length: The number of elements.
    """

    element: AffineExpression
    length: AffineExpression


def _range(progressions: "Progressions", node: ir.Node) -> Progression | None:
    start, limit, step = (progressions.integers.scalar(value) for value in node.inputs)
    if start is None or limit is None or step is None or step.number not in (1, -1):
        return None
    return Progression(start + AffineExpression.symbol(INDEX) * step.number, (limit - start) * step.number)


def _same(progressions: "Progressions", node: ir.Node) -> Progression | None:
    return progressions.operand(node, 0) if node.op_type != "Cast" or node.outputs[0].dtype in _HOLD_SIZES else None


def _negative(progressions: "Progressions", node: ir.Node) -> Progression | None:
    operand = progressions.operand(node, 0)
    return None if operand is None else replace(operand, element=-operand.element)


def _sum(progressions: "Progressions", node: ir.Node) -> Progression | None:
    """Return the progression of the Add or Sub ``node``.

    One operand must be a progression, and the other a single number.
    """
    left, right = progressions.operand(node, 0), progressions.operand(node, 1)
    progression = left or right
    number = progressions.integers.scalar(node.inputs[0 if left is None else 1])
    if progression is None or number is None or (left is not None and right is not None):
        return None
    sides = (number, progression.element) if left is None else (progression.element, number)
    return replace(progression, element=sides[0] + sides[1] if node.op_type == "Add" else sides[0] - sides[1])


_TRANSFER: Mapping[str, Callable[["Progressions", ir.Node], Progression | None]] = {
    **dict.fromkeys(("Add", "Sub"), _sum),
    **dict.fromkeys(("Cast", "Identity", "Squeeze", "Unsqueeze"), _same),
    "Neg": _negative,
    "Range": _range,
}


class Progressions(Domain[Progression]):
    """Finds progressions: the results of a Range, also after a Neg, or after an Add or Sub of a number.

    ``integers``: the domain that computes the expressions of these numbers.
    """

    transfer = _TRANSFER
    deepest = 32

    def __init__(self, integers: Integers) -> None:
        super().__init__()
        self.integers = integers
