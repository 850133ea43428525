"""Tell from the structure of a model whether ``optimize`` may change it, without importing onnx."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import Any

from ortscan.session.outline import Node, Outline

__all__ = ["LEAST_STEPS", "may_be_changed"]

LEAST_STEPS = 4
"""The same as ``rewrites.loop_form.written_out.chains.LEAST_STEPS``, which takes half a second to import."""

_LOOPS = (b"Scan", b"Loop", b"RNN", b"GRU", b"LSTM")
_RUNS_IFS = "cpu"
_ONLY_FOR_LOOPS = frozenset(
    (
        *("target", "shapes", "dims", "max_unroll", "memory_budget", "costs", "fast_math", "native", "passes", "skip", "verify"),
        "on_difference",
    )
)


def may_be_changed(outline: Outline, options: Mapping[str, Any]) -> bool:
    """Return False only if ``optimize`` certainly leaves the model as it is.

    It changes loops and recurrent nodes, steps that are written out, and, for targets that lack it, an If.
    Some options make it change other models too.
    """
    if not options.keys() <= _ONLY_FOR_LOOPS:
        return True
    if outline.names(*_LOOPS):
        return True
    try:
        nodes = list(outline.nodes())
    except (IndexError, KeyError):
        return False  # onnxruntime cannot read it either
    has_if = options.get("target", _RUNS_IFS) != _RUNS_IFS and any(node.operator == b"If" for node in nodes)
    return has_if or _may_be_written_out(nodes, outline.inputs)


def _may_be_written_out(nodes: Sequence[Node], inputs: Container[bytes]) -> bool:
    """Return True if four rows of one tensor are read by constant indices: ``chains.may_be_written_out`` on serialised nodes."""
    producers = {output: node for node in nodes for output in node.outputs}
    rows = Counter[bytes]()
    for node in nodes:
        source, *indices = node.inputs or [b""]
        producer = producers.get(source)
        if source not in inputs if producer is None else producer.operator in (b"Shape", b"Constant"):
            continue
        if node.operator == b"Split":
            rows[source] += len(node.outputs)
        elif node.operator in (b"Gather", b"Slice") and all(_is_constant(name, producers, inputs) for name in indices):
            rows[source] += 1
    return any(count >= LEAST_STEPS for count in rows.values())


def _is_constant(name: bytes, producers: Mapping[bytes, Node], inputs: Container[bytes]) -> bool:
    """Return True for the output of a Constant and for an initializer, also behind Identity nodes."""
    for _ in producers:
        node = producers.get(name)
        if node is None or node.operator != b"Identity" or not node.inputs:
            break
        name = node.inputs[0]
    producer = producers.get(name)
    return name not in inputs if producer is None else producer.operator == b"Constant"
