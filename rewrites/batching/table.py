"""The table: (operator domain, type) to batching rule, filled by the modules that hold the rules."""

from collections.abc import Callable, Sequence

import onnx_ir as ir

from rewrites.batching.call import Call
from rewrites.not_applicable import NotApplicable

__all__ = ["BatchingRule", "batch", "has_rule"]

BatchingRule = Callable[[Call], Sequence[ir.Value] | NotApplicable]


def has_rule(node: ir.Node) -> bool:
    """Whether the table knows the operator (the rule may still refuse the case at hand)."""
    raise NotImplementedError


def batch(call: Call) -> Sequence[ir.Value] | NotApplicable:
    """Emit ``call``'s operator for all steps at once and give its results, each with the steps as an extra axis 0."""
    raise NotImplementedError
