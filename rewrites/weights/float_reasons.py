"""Says why the largest constant of floats cannot be stored in fewer bits.

    a = MatMul(x, W); y = Add(a, W)    ->    'W' stays float32, because Add reads it too

Only the use of a constant is considered, not the error of its smaller form.
"""

from collections.abc import Collection

import onnx_ir as ir

from rewrites.base.plain_text import quoted
from rewrites.graph.values import is_overridable
from rewrites.graph.walk import inner_graphs
from rewrites.weights.finding import LEAST_ELEMENTS, weight_positions

__all__ = ["why_float"]

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def why_float(graph: ir.Graph, stored: Collection[ir.Value]) -> str:
    """Return a sentence on the largest constant of floats that is not in ``stored``.

    If there are stored constants, only constants that are larger or that the caller may replace count. If there is none, return "".
    """
    constants = [(value, tensor) for value in _constants(graph) if (tensor := _float_tensor(value)) is not None]
    most = max((tensor.nbytes for value, tensor in constants if value in stored), default=-1)
    is_large = {
        value: tensor.nbytes > most or (is_overridable(value) and tensor.size >= LEAST_ELEMENTS) for value, tensor in constants
    }
    left = [(value, tensor) for value, tensor in constants if value not in stored and is_large[value]]
    if not left:
        return "" if stored else "the model has no constant of floats"
    value, tensor = max(left, key=lambda pair: pair[1].nbytes)
    name = quoted(value.name)
    if tensor.dtype != ir.DataType.FLOAT:
        return f"{name} is not float32, but {tensor.dtype.name.lower()}"
    return f"{name} stays float32, because {_reason(value, tensor)}"


def _constants(graph: ir.Graph) -> list[ir.Value]:
    """Return the initializers and the results of Constant nodes of ``graph`` and its nested graphs."""
    graphs = [graph, *inner_graphs(graph)]
    constants = [node.outputs[0] for each in graphs for node in each if node.op_type == "Constant" and node.domain == ""]
    return [*(value for each in graphs for value in each.initializers.values()), *constants]


def _float_tensor(value: ir.Value) -> ir.TensorProtocol | None:
    tensor = value.const_value if value.is_initializer() else ir.convenience.get_const_tensor(value)
    return tensor if tensor is not None and tensor.dtype in _FLOATS else None


def _reason(value: ir.Value, tensor: ir.TensorProtocol) -> str:
    if is_overridable(value):
        return "the caller may replace it; to make it a constant: --freeze"
    if value.is_graph_output():
        return "it is an output"
    others = [node.op_type for node, position in value.uses() if position not in weight_positions(node)]
    if others and len(others) < len(value.uses()):
        return f"{others[0]} reads it too"
    if others or not value.uses():
        return f"{others[0]} reads it, and no product or recurrent node" if others else "no node reads it"
    if tensor.size < LEAST_ELEMENTS:
        return f"it has only {tensor.size} elements, and at least {LEAST_ELEMENTS} are needed"
    return "it is a vector"
