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
    """A vector of ``count`` numbers. ``number`` is each element as an expression of the symbol INDEX."""

    number: AffineExpression
    count: AffineExpression


def _range(rows: "Progressions", node: ir.Node) -> Progression | None:
    start, limit, step = (rows.integers.scalar(value) for value in node.inputs)
    if start is None or limit is None or step is None or step.number not in (1, -1):
        return None
    return Progression(start + AffineExpression.symbol(INDEX) * step.number, (limit - start) * step.number)


def _same(rows: "Progressions", node: ir.Node) -> Progression | None:
    return rows.operand(node, 0) if node.op_type != "Cast" or node.outputs[0].dtype in _HOLD_SIZES else None


def _negative(rows: "Progressions", node: ir.Node) -> Progression | None:
    row = rows.operand(node, 0)
    return None if row is None else replace(row, number=-row.number)


def _sum(rows: "Progressions", node: ir.Node) -> Progression | None:
    """Return the progression of the Add or Sub ``node``.

    One operand is a progression, and the other a number.
    """
    left, right = rows.operand(node, 0), rows.operand(node, 1)
    row = left or right
    added = rows.integers.scalar(node.inputs[0 if left is None else 1])
    if row is None or added is None or (left is not None and right is not None):
        return None
    sides = (added, row.number) if left is None else (row.number, added)
    return replace(row, number=sides[0] + sides[1] if node.op_type == "Add" else sides[0] - sides[1])


_TRANSFER: Mapping[str, Callable[["Progressions", ir.Node], Progression | None]] = {
    **dict.fromkeys(("Add", "Sub"), _sum),
    **dict.fromkeys(("Cast", "Identity", "Squeeze", "Unsqueeze"), _same),
    "Neg": _negative,
    "Range": _range,
}


class Progressions(Domain[Progression]):
    """Finds progressions: a Range, perhaps negated, or with a number added or subtracted.

    ``integers``: the expressions of the numbers.
    """

    transfer = _TRANSFER
    deepest = 32

    def __init__(self, integers: Integers) -> None:
        super().__init__()
        self.integers = integers
