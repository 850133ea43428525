"""The table of batching rules: from (domain, operator type) to the rules for ranges of opsets.

The modules that define rules are imported when the table is first used.
"""

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.batching.call import Call, Refused, Result
from rewrites.graph.dims import differ, refined, with_axes, without_names
from rewrites.graph.type_names import type_name
from rewrites.graph.values import dim_of
from rewrites.ops.traits import operators

__all__ = ["BatchingRule", "batch", "fill_in_shapes", "has_rule", "rule"]


BatchingRule = Callable[[Call], Sequence[Result]]
"""Emits a call for all steps and returns one result for each output of its node. Raises ``Refused`` if that is impossible."""

_MODULES = (
    *("along_axes", "attention", "contrib", "einsum", "elementwise", "fold_into_batch", "gemm", "indexing", "nested_if"),
    *("nested_loops", "normalization", "products", "quantization", "reshaping", "resizing", "rows", "shape_queries"),
    "slicing",
)


@dataclass(frozen=True)
class _Entry:
    """A batching rule for the opsets from ``since`` (inclusive) to ``until`` (exclusive)."""

    rule: BatchingRule
    since: int
    until: int


_TABLE: dict[tuple[str, str], list[_Entry]] = {}


_REFUSED: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        (
            *("BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow", "NonMaxSuppression", "NonZero", "Range"),
            *("StringNormalizer", "StringSplit", "Unique"),
        ),
        ("DATA-DEPENDENT-SHAPE", "the shape of the result may differ between steps"),
    ),
    **dict.fromkeys(operators("random"), ("RANDOM", "the operator draws random numbers in each step")),
    **dict.fromkeys(
        (
            *("ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceConstruct"),
            *("SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence"),
        ),
        ("SEQUENCE", "sequences and optionals cannot be stacked"),
    ),
    "MelWeightMatrix": ("BATCHED-STRUCTURE", "the numbers that determine the matrix differ between steps"),
    "SequenceMap": ("CONTROL-FLOW", "control flow inside the body"),
}
"""The codes and reasons of operators that cannot be batched."""


def rule(*op_types: str, domain: str = "", since: int = 1, until: int = 2**31) -> Callable[[BatchingRule], BatchingRule]:
    """Register the decorated function as the batching rule of the operators ``op_types``.

    The rule holds for the opsets from ``since`` (inclusive) to ``until`` (exclusive).
    """

    def enter(function: BatchingRule) -> BatchingRule:
        for op_type in op_types:
            _TABLE.setdefault((domain, op_type), []).append(_Entry(function, since, until))
        return function

    return enter


@functools.cache
def _table() -> dict[tuple[str, str], list[_Entry]]:
    for module in _MODULES:
        importlib.import_module(f"{__package__}.{module}")
    return _TABLE


def has_rule(node: ir.Node) -> bool:
    """Return True if the table has a rule for the operator of ``node``.

    The rule may still refuse the node.
    """
    return (node.domain, node.op_type) in _table()


def batch(call: Call) -> Sequence[Result] | NotApplicable:
    """Emit the operator of ``call`` for all steps at once. Return its results, or a reason against it.

    There is one result for each output of the node. A batched result has the output's type, and the output's shape with the steps
    as an extra axis 0. A result may also be an operand of the call, or a constant such as the Shape of a batched value. If the call
    is refused, the builder contains no new nodes.

    The codes of reasons are ``NO-BATCHING-RULE``, ``CONTROL-FLOW``, ``RANDOM``, ``DATA-DEPENDENT-SHAPE``, ``BATCHED-STRUCTURE``,
    ``BATCHED-WEIGHTS``, ``DYNAMIC-STRUCTURE``, ``RANK-UNKNOWN``, ``SHAPE-UNKNOWN``, ``PRECISION``, ``EMPTY-STEPS``,
    ``STRING-GATHER``, ``TRAINING``, ``MALFORMED``, ``TYPE-UNKNOWN``, ``TYPE-MISMATCH``, ``SHAPE-MISMATCH``.
    """
    built, domain, op_type = len(call.build.nodes), call.node.domain, call.node.op_type
    version = call.build.opsets.get(domain, 1)
    try:
        for entry in _table().get((domain, op_type), ()):
            if entry.since <= version < entry.until:
                results = entry.rule(call)
                fill_in_shapes(call, results, call.build.nodes[built:])
                return results
        if domain == "" and op_type in _REFUSED:
            raise call.refuse(*_REFUSED[op_type])
        raise call.refuse("NO-BATCHING-RULE", f"no batching rule in opset {version} of domain {domain or 'ai.onnx'!r}")
    except Refused as refused:
        call.build.discard(built)
        return refused.reason


def fill_in_shapes(call: Call, results: Sequence[Result], built: Sequence[ir.Node]) -> None:
    """Set missing types and sizes of ``results`` from the declared outputs of the node.

    Only results of the new nodes ``built`` change. Raise Refused if a declaration contradicts a result.
    """
    for output, result in zip(call.node.outputs, results, strict=True):
        value = result.value
        if value.producer() not in built:
            continue
        if value.type is None:
            value.type = output.type
        elif output.type is not None and output.type != value.type:
            raise call.refuse(
                "TYPE-MISMATCH", f"{output.name!r} is declared {type_name(output.type)} and computed as {type_name(value.type)}"
            )
        if output.shape is not None:
            one_step = without_names(output.shape)
            wanted = with_axes(one_step, 0, _steps_of_result(call)) if result.batched else one_step
            if differ(value.shape, wanted):
                detail = f"{output.name!r} is declared {output.shape} in one step and computed as {value.shape}"
                raise call.refuse("SHAPE-MISMATCH", detail)
            value.shape = refined(without_names(value.shape), wanted, value.shape)


def _steps_of_result(call: Call) -> int | str | None:
    for operand in call.operands:
        if operand is not None and operand.batched and operand.value.shape is not None:
            return dim_of(operand.value, 0)
    return None
