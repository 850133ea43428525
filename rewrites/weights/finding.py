"""Finds the float32 weights that can be stored in fewer bits.

    y = MatMul(x, W)    y = Gemm(x, W, b)    y = LSTM(x, W, R, B)    here W and R, but not the biases b and B

A weight is a constant that only MatMul, Gemm, RNN, GRU and LSTM nodes read, in any graph of the model. It has at least
``LEAST_ELEMENTS`` elements, because a smaller weight costs neither space nor time.

A channel has the weights with which one number of the result is computed: a column of W in ``MatMul(x, W)``, and a row of W and R
in recurrent nodes.
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.graph.values import is_constant
from rewrites.graph.walk import all_nodes

__all__ = ["LEAST_ELEMENTS", "Weight", "find_weights", "weight_positions"]

LEAST_ELEMENTS = 1024
_RECURRENT = ("RNN", "GRU", "LSTM")


@dataclass(frozen=True, eq=False)
class Weight:
    """A weight, and the nodes that read it.

    Attributes:
        value: the constant.
        tensor: its numbers, which may be in a file.
        reads: pairs of a node and the position of the weight in its inputs.
        axis: the axis that a channel spans, counted from the end: -1 if channels are rows, -2 if they are columns.
    """

    value: ir.Value
    tensor: ir.TensorProtocol
    reads: list[tuple[ir.Node, int]]
    axis: int


def find_weights(graph: ir.Graph) -> list[Weight]:
    """Return the weights of ``graph`` and its nested graphs, in the order of the nodes that read them."""
    weights: dict[ir.Value, Weight] = {}
    for node in all_nodes(graph):
        for position in weight_positions(node):
            value = node.inputs[position]
            if value is None or not is_constant(value):
                continue
            if value not in weights:
                tensor = ir.convenience.get_const_tensor(value)
                if tensor is None or tensor.dtype != ir.DataType.FLOAT or tensor.size < LEAST_ELEMENTS or len(tensor.shape) < 2:
                    continue
                weights[value] = Weight(value, tensor, [], _channel_axis(node, position))
            weights[value].reads.append((node, position))
    return [weight for weight in weights.values() if _has_no_other_use(weight)]


def weight_positions(node: ir.Node) -> tuple[int, ...]:
    """Return the positions at which ``node`` may read weights."""
    if node.domain != "":
        return ()
    first = {**dict.fromkeys(_RECURRENT, 1), "MatMul": 0, "Gemm": 0}.get(node.op_type)
    return () if first is None else tuple(range(first, min(first + 2, len(node.inputs))))


def _channel_axis(node: ir.Node, position: int) -> int:
    if node.op_type in _RECURRENT:
        return -1
    attribute = node.attributes.get("transA" if position == 0 else "transB") if node.op_type == "Gemm" else None
    is_transposed = attribute is not None and bool(attribute.as_int())
    return -1 if is_transposed == (position == 1) else -2


def _has_no_other_use(weight: Weight) -> bool:
    return len(weight.value.uses()) == len(weight.reads) and not weight.value.is_graph_output()
