"""Find out why the outputs of the original and of the rewritten model differ.

The reason may be onnxruntime's graph optimisation. In this case, the outputs agree if graph optimisation is off for the original:

    original: 14.5    original, with graph optimisation off: -18.2    rewritten model: -18.2

Otherwise, the first inner value that differs helps to find the reason. To compare inner values, both models run with additional
outputs: the values whose names occur in both main graphs.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import onnx

from ortscan.base.proto_graphs import all_graphs
from ortscan.modelio.source import ModelSource, changed_source
from ortscan.running.budget import RUN_SECONDS
from ortscan.running.runner import ModelSession
from ortscan.verification.judge.compare_outputs import Comparer
from ortscan.verification.judge.compare_values import compare_values
from ortscan.verification.judge.judge import Judged
from ortscan.verification.judge.tolerances import Tolerances
from rewrites.base.plain_text import quoted
from rewrites.ops.quirks import QUIRKS

__all__ = ["blame", "first_inner_difference", "known_defect"]

_BETWEEN = ("Cast", "Identity")
_TRANSPOSED = QUIRKS["ORT-TRANSPOSED-TIMES-VECTOR"]
_MOST_VALUES = 1000
"""The most inner values to compare."""


def blame(proto: onnx.ModelProto, comparer: Comparer, witness: Judged, plain: Callable[[], ModelSession]) -> str:
    """Return a sentence if onnxruntime's graph optimisation causes the difference, else an empty string.

    Args:
        proto: the original.
        comparer: compares the outputs.
        witness: the first case in which outputs differ.
        plain: a function that creates a session of the original without graph optimisation.
    """
    assert witness.witness is not None
    feed, after = witness.witness
    values = _values(plain(), feed)
    if values is None or not comparer.finds_equal(values, after, witness.gaps.keys()):
        return ""
    return f"with onnxruntime's graph optimisation off, the original and the result agree{known_defect(proto)}"


def known_defect(proto: onnx.ModelProto) -> str:
    """Return a text in parentheses on a known defect of onnxruntime that may explain the difference.

    Return "" if no known defect explains the difference.
    """
    return f" ({_TRANSPOSED.id}: {_TRANSPOSED.symptom.rstrip('.')})" if _multiplies_a_transpose(proto) else ""


def _multiplies_a_transpose(proto: onnx.ModelProto) -> bool:
    """Return True if the left factor of a MatMul is a Transpose, and the right factor may be a vector."""
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


def first_inner_difference(
    old: ModelSource,
    new: ModelSource,
    feed: Mapping[str, Any],
    runs: Callable[[ModelSource, Sequence[str]], ModelSession],
    tolerances: Tolerances,
    stack: ExitStack,
) -> str:
    """Return a phrase about the first inner value that differs between two models, or an empty string.

    Inner values are compared if both main graphs have a value with the same name, rank and element type.

    Args:
        old: the original.
        new: the rewritten model.
        feed: the inputs.
        runs: a function that creates a session of a model. The session returns the outputs with the given names.
        tolerances: the tolerances for floats.
        stack: removes temporary files at the end of the comparison.
    """
    producers = {name: node for node in old.proto.graph.node for name in node.output if name}
    shared = {name for node in new.proto.graph.node for name in node.output} - {value.name for value in old.proto.graph.output}
    names = [name for name in producers if name in shared][:_MOST_VALUES]
    values = []
    for source in (old, new) if names else ():
        values.append(_values(runs(changed_source(source, _with_outputs(source.proto, names), stack), names), feed))
        if values[-1] is None:
            return ""
    for name, before, after in zip(names, *(each for each in values if each is not None), strict=True):
        arrays = isinstance(before, np.ndarray) and isinstance(after, np.ndarray)
        if not arrays or before.ndim != after.ndim or before.dtype != after.dtype:
            continue
        gap = compare_values(before, after, tolerances)
        if gap.reason is not None:
            node = producers[name]
            label = f"{node.op_type} {quoted(node.name)}" if node.name else node.op_type
            where = f" at {list(gap.index)}" if gap.index else ""
            return f"the first value inside that differs is {quoted(name)} ({label}){where}: it {gap.reason}"
    return ""


def _values(runs: ModelSession, feed: Mapping[str, Any]) -> Sequence[Any] | None:
    return None if runs.error is not None else runs.run(feed, RUN_SECONDS).values


def _with_outputs(proto: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """Return a copy of a model whose outputs are the values ``names``.

    Outputs of unknown type are declared without a type. onnxruntime infers these types.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    known = {value.name: value for value in copy.graph.value_info}
    outputs = [known.get(name, onnx.ValueInfoProto(name=name)) for name in names]
    del copy.graph.output[:]
    copy.graph.output.extend(outputs)
    return copy
