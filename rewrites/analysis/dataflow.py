"""Dataflow analysis: computes facts about values from the facts about the operands.

The transfer function of an operator computes the fact about its result:

    Add: left + right    Neg: -operand    Split: no transfer function, so nothing is known about its results

A domain defines one kind of fact (an affine expression, a bound, a progression) and its transfer functions.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import onnx_ir as ir

__all__ = ["Domain"]

T = TypeVar("T")


class Domain(Generic[T]):
    """Computes facts of one kind about values, and caches them.

    A subclass defines the attribute ``transfer``. It maps the type of a standard operator to a function ``(domain, node)``, which
    returns the fact about the node's result, or None. The analysis follows chains of at most ``deepest`` operators.
    """

    transfer: Mapping[str, Callable[[Any, ir.Node], T | None]]
    deepest = 100

    def __init__(self, known: Mapping[ir.Value, T | None] | None = None) -> None:
        self._known: dict[ir.Value, T | None] = dict(known or {})
        self._depth = 0

    def of(self, value: ir.Value | None) -> T | None:
        """Return the fact about ``value``, or None if it is unknown."""
        if value is None or self._depth > self.deepest:
            return None
        if value not in self._known:
            self._depth += 1
            self._known[value] = self.read(value)
            self._depth -= 1
        return self._known[value]

    def operand(self, node: ir.Node, index: int) -> T | None:
        """Return the fact about input ``index`` of ``node``, or None if it is unknown or the input is absent."""
        return self.of(node.inputs[index]) if index < len(node.inputs) else None

    def read(self, value: ir.Value) -> T | None:
        """Compute the fact about ``value`` from the node that produces the value.

        A subclass overrides this method if it also knows facts that do not come from nodes.
        """
        node = value.producer()
        return None if node is None else self.transferred(node)

    def transferred(self, node: ir.Node) -> T | None:
        """Return the fact about the result of ``node``. The transfer function of its operator computes it.

        Return None if the operator has no transfer function.
        """
        transfer = self.transfer.get(node.op_type) if node.domain == "" else None
        return None if transfer is None else transfer(self, node)
