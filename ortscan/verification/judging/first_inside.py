"""The first value inside two models that differs: values that both compute, by the same name, are made outputs and compared.

What has another rank or element type is taken for another value of that name.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import onnx

from ortscan.modelio.source import Source, changed_source
from ortscan.running.budget import RUN_SECONDS
from ortscan.running.runner import Runs
from ortscan.verification.closeness.compare_values import Gap, Tolerances, compare_values
from rewrites.base.plain_text import quoted

__all__ = ["first_inside"]

_MOST = 1000
"""So many values are made outputs at most, those made first."""


def first_inside(
    old: Source,
    new: Source,
    feed: Mapping[str, Any],
    runs: Callable[[Source, Sequence[str]], Runs],
    tolerances: Tolerances,
    stack: ExitStack,
) -> str:
    """Return in words which value of the main graphs is the first to differ on ``feed``; nothing where none is found."""
    makers = {name: node for node in old.proto.graph.node for name in node.output if name}
    others = {name for node in new.proto.graph.node for name in node.output}
    outputs = {value.name for value in old.proto.graph.output}
    names = [name for name in makers if name in others and name not in outputs][:_MOST]
    if not names:
        return ""
    values = []
    for source in (old, new):
        runner = runs(changed_source(source, _giving(source.proto, names), stack), names)
        outcome = None if runner.error is not None else runner.run(feed, RUN_SECONDS)
        if outcome is None or outcome.values is None:
            return ""
        values.append(outcome.values)
    for name, before, after in zip(names, *values, strict=True):
        if _are_of_one_kind(before, after):
            gap = compare_values(before, after, tolerances)
            if gap.reason is not None:
                return (
                    f"the first value inside that differs is {quoted(name)} ({_label(makers[name])}){_where(gap)}: it {gap.reason}"
                )
    return ""


def _giving(proto: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """Return a copy of a model with ``names`` for its outputs, whose types onnxruntime finds out."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    known = {value.name: value for value in copy.graph.value_info}
    made = [known.get(name, onnx.ValueInfoProto(name=name)) for name in names]
    del copy.graph.output[:]
    copy.graph.output.extend(made)
    return copy


def _are_of_one_kind(before: Any, after: Any) -> bool:
    arrays = isinstance(before, np.ndarray) and isinstance(after, np.ndarray)
    return arrays and before.ndim == after.ndim and before.dtype == after.dtype


def _label(node: onnx.NodeProto) -> str:
    return f"{node.op_type} {quoted(node.name)}" if node.name else node.op_type


def _where(gap: Gap) -> str:
    return f" at {list(gap.index)}" if gap.index else ""
