"""What sizes a model itself asks for: an If on ``Less(127, Shape(x))`` computes something else from 128 on, which is to be seen."""

import onnx
from onnx import numpy_helper

from ortscan.running.graph_index import all_nodes

__all__ = ["asked_size"]

_COMPARISONS = frozenset(("Greater", "GreaterOrEqual", "Less", "LessOrEqual"))
_MOVES = frozenset(("Cast", "Gather", "Identity", "ReduceMax", "Reshape", "Slice", "Squeeze"))
_LEAST, _MOST = 8, 1 << 10
"""Smaller ones are tried anyway, and larger ones take too long."""


def asked_size(proto: onnx.ModelProto) -> int:
    """Return the largest number that sizes are compared with in ``proto``, or 0."""
    constants = {one.name: one for one in proto.graph.initializer if one.data_type == onnx.TensorProto.INT64}
    makers = {name: node for node, _ in all_nodes(proto) for name in node.output}
    found = [0]
    for node in makers.values():
        if node.op_type in _COMPARISONS and node.domain == "" and any(_is_size(name, makers) for name in node.input):
            numbers = [numpy_helper.to_array(constants[name]) for name in node.input if name in constants]
            found += [int(number.item()) for number in numbers if number.size == 1]
    return max(number for number in found if number == 0 or _LEAST <= number <= _MOST)


def _is_size(name: str, makers: dict[str, onnx.NodeProto]) -> bool:
    node = makers.get(name)
    while node is not None and node.op_type in _MOVES and node.domain == "":
        node = makers.get(node.input[0])
    return node is not None and node.op_type == "Shape" and node.domain == ""
