"""The table: (operator domain, type) to batching rule, filled by the modules that hold the rules when it is first asked."""

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.batching.call import Call, Refused, Result
from rewrites.batching.result_shapes import settle_shapes

__all__ = ["BatchingRule", "batch", "has_rule", "rule"]

BatchingRule = Callable[[Call], Sequence[Result]]
"""Emits a call for all steps and returns one result for each output of its node; raises ``Refused`` where it cannot."""

_MODULES = (
    "attention",
    "axis_carrying",
    "clip",
    "concatenation",
    "contrib",
    "conversion",
    "convolution",
    "dynamic_quantization",
    "einsum",
    "elementwise",
    "expansion",
    "fold_into_batch",
    "function_body",
    "gather",
    "gemm",
    "matmul",
    "matmul_integer",
    "nested_if",
    "nested_loop",
    "nested_scan",
    "normalization",
    "normalized_channels",
    "one_hot",
    "pool_indices",
    "quantization",
    "quantized_products",
    "recurrent",
    "reductions",
    "refused",
    "reshaping",
    "resizing",
    "rows",
    "scatter",
    "shape_queries",
    "slicing",
    "spectral",
)


@dataclass(frozen=True)
class _Entry:
    rule: BatchingRule
    since: int
    until: int
    refuses: bool


_TABLE: dict[tuple[str, str], list[_Entry]] = {}


def rule(
    *op_types: str, domain: str = "", since: int = 1, until: int = 2**31, refuses: bool = False
) -> Callable[[BatchingRule], BatchingRule]:
    """Enter the decorated function for ``op_types`` in the opsets from ``since`` up to, not including, ``until``.

    ``refuses`` marks a rule that only tells why an operator has none.
    """

    def enter(function: BatchingRule) -> BatchingRule:
        for op_type in op_types:
            _TABLE.setdefault((domain, op_type), []).append(_Entry(function, since, until, refuses))
        return function

    return enter


@functools.cache
def _table() -> dict[tuple[str, str], list[_Entry]]:
    for module in _MODULES:
        importlib.import_module(f"{__package__}.{module}")
    return _TABLE


def _domain(node: ir.Node) -> str:
    return "" if node.domain == "ai.onnx" else node.domain


def _entries(node: ir.Node) -> list[_Entry]:
    return _table().get((_domain(node), node.op_type), [])


def has_rule(node: ir.Node) -> bool:
    """Whether the table knows the operator (the rule may still refuse the case at hand)."""
    return any(not entry.refuses for entry in _entries(node))


def batch(call: Call) -> Sequence[Result] | NotApplicable:
    """Emit ``call``'s operator for all steps at once and return its results, one for each output of the node.

    A batched result has the element type of the node's output, and its shape with the steps as an extra axis 0. A result may be an
    operand's own value, or a constant (the Shape of a batched value is loop-invariant). Where the answer is NotApplicable,
    nothing that this call built is left in its builder. Codes: ``NO-BATCHING-RULE``, ``CONTROL-FLOW``, ``RANDOM``,
    ``DATA-DEPENDENT-SHAPE``, ``BATCHED-STRUCTURE``, ``BATCHED-WEIGHTS``, ``DYNAMIC-STRUCTURE``, ``RANK-UNKNOWN``,
    ``SHAPE-UNKNOWN``, ``PRECISION``, ``EMPTY-STEPS``, ``STRING-GATHER``, ``TRAINING``, ``MALFORMED``, ``TYPE-UNKNOWN``,
    ``TYPE-MISMATCH``, ``SHAPE-MISMATCH``.
    """
    built = len(call.build.nodes)
    domain = _domain(call.node)
    version = call.build.opsets.get(domain, 1)
    try:
        for entry in _entries(call.node):
            if entry.since <= version < entry.until:
                results = entry.rule(call)
                settle_shapes(call, results, call.build.nodes[built:])
                return results
        raise call.refuse("NO-BATCHING-RULE", f"no batching rule in opset {version} of domain {domain or 'ai.onnx'!r}")
    except Refused as refused:
        call.build.discard(built)
        return refused.reason
