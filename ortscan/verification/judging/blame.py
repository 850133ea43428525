"""Whether the first difference comes from onnxruntime's graph optimisation of the original, and from which known defect.

before: 14.5    before, with graph optimisation off: -18.2    after: -18.2
"""

from collections.abc import Callable, Sequence

import onnx

from ortscan.base.proto_graphs import all_graphs
from ortscan.running.budget import RUN_SECONDS
from ortscan.running.runner import Runs
from ortscan.verification.judging.judge import Judge, Judged
from rewrites.ops.quirks import QUIRKS

__all__ = ["blame", "known_defect"]

_BETWEEN = ("Cast", "Identity")
_TRANSPOSED = QUIRKS["ORT-TRANSPOSED-TIMES-VECTOR"]


def blame(proto: onnx.ModelProto, judge: Judge, judged: Sequence[Judged], plain: Callable[[], Runs]) -> str:
    """Say that onnxruntime computes the original otherwise once it is optimised. Empty if it does not.

    Args:
        proto: The original.
        judge: What ran both models.
        judged: All cases.
        plain: Runs the original with graph optimisation off.
    """
    first = next((one for one in judged if one.witness is not None), None)
    if first is None or first.witness is None:
        return ""
    feed, after = first.witness
    runner = plain()
    outcome = None if runner.error is not None else runner.run(feed, RUN_SECONDS)
    if outcome is None or outcome.values is None or not judge.finds_equal(outcome.values, after, first.gaps.keys()):
        return ""
    return f"with onnxruntime's graph optimisation off the original computes what the result computes{known_defect(proto)}"


def known_defect(proto: onnx.ModelProto) -> str:
    """Return the defect of onnxruntime that may explain other results of the original, in parentheses. Empty if none is known."""
    return f" ({_TRANSPOSED.id}: {_TRANSPOSED.symptom.rstrip('.')})" if _multiplies_a_transpose(proto) else ""


def _multiplies_a_transpose(proto: onnx.ModelProto) -> bool:
    """Return True if the left factor of a MatMul is a Transpose, and the right one may be a vector."""
    graphs = [*all_graphs(proto), *proto.functions]
    nodes = [node for graph in graphs for node in graph.node]
    producers = {name: node for node in nodes for name in node.output}
    matrices = {value.name for graph in all_graphs(proto) for value in graph.initializer if len(value.dims) != 1}

    def is_transposed(name: str) -> bool:
        node = producers.get(name)
        for _ in nodes:
            if node is None or node.op_type not in _BETWEEN:
                break
            node = producers.get(node.input[0])
        return node is not None and node.op_type == "Transpose"

    return any(node.op_type == "MatMul" and node.input[1] not in matrices and is_transposed(node.input[0]) for node in nodes)
