"""Recurrent nodes that an If keeps from sequences without steps or rows, so that sizes of zero may be tried on them.

If (Shape(x), or Size(x), is above 0) then GRU (x, W, R) else ...

Works round ORT-RECURRENT-NO-ROWS and ORT-QUANTIZED-LSTM-NO-ROWS.
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
    """Return the outputs of each recurrent node in a branch of an If that asks for all its sizes that may do harm."""
    found: set[tuple[str, ...]] = set()
    for graph in all_graphs(proto):
        makers = {name: node for node in graph.node for name in node.output}
        for node in graph.node:
            if node.op_type == "If":
                asked = set(_asked(node.input[0], makers, 0))
                inner = (one for body in bodies_of(node) for one in body.node if one.op_type in _RECURRENT)
                found.update(tuple(one.output) for one in inner if {(one.input[0], axis) for axis in _harmful(one)} <= asked)
    return found


def _harmful(node: onnx.NodeProto) -> list[int]:
    bare = len(node.input) <= _LENGTHS or not node.input[_LENGTHS]
    return [*([_STEPS] if bare else []), *([_ROWS] if node.op_type != "RNN" else [])]


def _asked(name: str, makers: Mapping[str, onnx.NodeProto], depth: int) -> Iterator[tuple[str, int]]:
    """Return the values, and axes of them, whose sizes ``name`` is computed from."""
    node = makers.get(name)
    if node is None or depth > _DEEPEST:
        return
    if node.op_type == "Shape":
        yield from ((node.input[0], attribute.i) for attribute in node.attribute if attribute.name == "start")
    if node.op_type == "Size":
        yield from ((node.input[0], axis) for axis in (_STEPS, _ROWS))
    for operand in node.input:
        yield from _asked(operand, makers, depth + 1)
