"""Reads facts about values: each from those of the operands, by the transfer function of the operator that computes the value.

    Add: one + other    Neg: -operand    Split: has no transfer function, so its results are unknown

A domain defines a kind of fact (an affine expression, a bound, a progression) and its transfer functions.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import onnx_ir as ir

__all__ = ["Domain"]

T = TypeVar("T")


class Domain(Generic[T]):
    """The facts about values. Each value is read once, through at most ``deepest`` operators.

    ``transfer``: for each standard operator, the function (domain, node) that returns the fact about its result, or None.
    """

    transfer: Mapping[str, Callable[[Any, ir.Node], T | None]]
    deepest = 100

    def __init__(self, known: Mapping[ir.Value, T | None] | None = None) -> None:
        self._known: dict[ir.Value, T | None] = dict(known or {})
        self._depth = 0

    def of(self, value: ir.Value | None) -> T | None:
        """Return the fact about ``value``, or None."""
        if value is None or self._depth > self.deepest:
            return None
        if value not in self._known:
            self._depth += 1
            self._known[value] = self.read(value)
            self._depth -= 1
        return self._known[value]

    def operand(self, node: ir.Node, index: int) -> T | None:
        """Return the fact about input ``index``, or None."""
        return self.of(node.inputs[index]) if index < len(node.inputs) else None

    def read(self, value: ir.Value) -> T | None:
        """Read a value; a domain with facts from elsewhere overrides this."""
        node = value.producer()
        return None if node is None else self.transferred(node)

    def transferred(self, node: ir.Node) -> T | None:
        """Apply the transfer function of ``node``."""
        transfer = self.transfer.get(node.op_type) if node.domain == "" else None
        return None if transfer is None else transfer(self, node)
