"""Find guarded nodes: recurrent nodes that an If protects from empty sequences and empty batches::

    If (Size (x) > 0) then GRU (x, W, R) else ...

onnxruntime crashes if a recurrent node gets an empty input. A model whose recurrent nodes are all guarded can be run on empty
inputs.

Works around ORT-RECURRENT-NO-ROWS and ORT-QUANTIZED-LSTM-NO-ROWS.
"""

from collections.abc import Iterator, Mapping

import onnx

from ortscan.base.proto_graphs import all_graphs, bodies_of

__all__ = ["guarded_nodes"]

_RECURRENT = ("RNN", "GRU", "LSTM", "DynamicQuantizeLSTM")
_STEPS, _ROWS = 0, 1
_LENGTHS = 4
_DEEPEST = 8


def guarded_nodes(proto: onnx.ModelProto) -> set[tuple[str, ...]]:
    """Return the names of the outputs of each guarded node.

    Some sizes of a recurrent node's sequence must not be 0. The node is guarded if it is in a branch of an If, and the condition of
    this If is computed from all of these sizes.
    """
    guarded: set[tuple[str, ...]] = set()
    for graph in all_graphs(proto):
        producers = {name: node for node in graph.node for name in node.output}
        for node in graph.node:
            if node.op_type == "If":
                tested = set(_tested_sizes(node.input[0], producers, 0))
                for inner in (inner for body in bodies_of(node) for inner in body.node if inner.op_type in _RECURRENT):
                    if {(inner.input[0], axis) for axis in _critical_axes(inner)} <= tested:
                        guarded.add(tuple(inner.output))
    return guarded


def _critical_axes(node: onnx.NodeProto) -> list[int]:
    bare = len(node.input) <= _LENGTHS or not node.input[_LENGTHS]
    return [*([_STEPS] if bare else []), *([_ROWS] if node.op_type != "RNN" else [])]


def _tested_sizes(name: str, producers: Mapping[str, onnx.NodeProto], depth: int) -> Iterator[tuple[str, int]]:
    """Find the sizes that the condition of an If is computed from. Yield (value, axis) for each size.

    Args:
        name: the value at which the backward search continues, at first the condition.
        producers: the nodes of the graph by the names of their outputs.
        depth: the number of nodes between the condition and the value ``name``. The search stops at a maximum depth.
    """
    node = producers.get(name)
    if node is None or depth > _DEEPEST:
        return
    if node.op_type == "Shape":
        yield from ((node.input[0], attribute.i) for attribute in node.attribute if attribute.name == "start")
    if node.op_type == "Size":
        yield from ((node.input[0], axis) for axis in (_STEPS, _ROWS))
    for operand in node.input:
        yield from _tested_sizes(operand, producers, depth + 1)
