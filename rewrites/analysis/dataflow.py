"""Derives facts about values from the operands of their operators, by the operator's transfer function.

    Add: one + other    Neg: -operand    Split: not in the table, so nothing is known of its results

A domain defines its facts: an affine expression, a constant or a row of numbers, for example. It also defines the transfer
functions and the facts that do not depend on operands.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import onnx_ir as ir

__all__ = ["Domain"]

T = TypeVar("T")


class Domain(Generic[T]):
    """The facts of values, each computed once from its operands, through at most ``deepest`` operators.

    ``transfer``: for each standard operator, the function (domain, node) that returns the fact of its result, or None.
    """

    transfer: Mapping[str, Callable[[Any, ir.Node], T | None]]
    deepest = 100

    def __init__(self, known: Mapping[ir.Value, T | None] | None = None) -> None:
        self._known: dict[ir.Value, T | None] = dict(known or {})
        self._depth = 0

    def of(self, value: ir.Value | None) -> T | None:
        """Return the fact of ``value``, or None."""
        if value is None or self._depth > self.deepest:
            return None
        if value not in self._known:
            self._depth += 1
            self._known[value] = self.read(value)
            self._depth -= 1
        return self._known[value]

    def operand(self, node: ir.Node, index: int) -> T | None:
        """Return the fact of input ``index``, or None."""
        return self.of(node.inputs[index]) if index < len(node.inputs) else None

    def read(self, value: ir.Value) -> T | None:
        """Return the fact of a value. Domains that do not only use operands override this."""
        node = value.producer()
        return None if node is None else self.transferred(node)

    def transferred(self, node: ir.Node) -> T | None:
        """Return the result of the transfer function of ``node``, or None."""
        transfer = self.transfer.get(node.op_type) if node.domain == "" else None
        return None if transfer is None else transfer(self, node)
