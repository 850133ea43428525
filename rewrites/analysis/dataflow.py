"""Reads what is known of values: from the operands of the operator that computes a value, by the operator's transfer function.

    Add: one + other    Neg: -operand    Split: not in the table, so nothing is known of its results

A domain says what is known (an affine expression, a constant, a row of numbers), how operators transfer it, and what is known of a
value without its operands.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import onnx_ir as ir

__all__ = ["Domain"]

T = TypeVar("T")


class Domain(Generic[T]):
    """What is known of values; each is read once, from its operands, not through more than ``deepest`` operators.

    ``transfer``: for each standard operator, the function (domain, node) that returns what is known of its result, or None.
    """

    transfer: Mapping[str, Callable[[Any, ir.Node], T | None]]
    deepest = 100

    def __init__(self, known: Mapping[ir.Value, T | None] | None = None) -> None:
        self._known: dict[ir.Value, T | None] = dict(known or {})
        self._depth = 0

    def of(self, value: ir.Value | None) -> T | None:
        """Return what is known of ``value``, or None."""
        if value is None or self._depth > self.deepest:
            return None
        if value not in self._known:
            self._depth += 1
            self._known[value] = self.read(value)
            self._depth -= 1
        return self._known[value]

    def operand(self, node: ir.Node, index: int) -> T | None:
        """Return what is known of input ``index``, or None."""
        return self.of(node.inputs[index]) if index < len(node.inputs) else None

    def read(self, value: ir.Value) -> T | None:
        """Read a value; domains that know more than its operands tell override this."""
        node = value.producer()
        return None if node is None else self.transferred(node)

    def transferred(self, node: ir.Node) -> T | None:
        """Return what the transfer function of ``node`` tells of its result."""
        transfer = self.transfer.get(node.op_type) if node.domain == "" else None
        return None if transfer is None else transfer(self, node)
