"""Constants that a body or branch dequantizes become its own.

    w = initializer; y = If(c) { d = DequantizeLinear(w, s); y = MatMul(x, d) }
    ->    y = If(c) { w = initializer; d = DequantizeLinear(w, s); y = MatMul(x, d) }

onnxruntime fuses a DequantizeLinear of constants with a product. It looks for weights and scale in the graph of these nodes alone,
and refuses the model if they are in a graph around it. Each body gets its own copy; the driver drops originals without readers.
A model of IR version 3 or 4 stays as it is, as in `weights-into-bodies`.

Works round ORT-DEQUANTIZED-OUTER-WEIGHTS.
"""

import copy

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.values import is_constant, through_identity
from rewrites.graph.walk import inner_graphs
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_FIRST_IR = 5
_OPERANDS = 2
"""The number of operands that have to be in the same graph: weights and scale, but not the zero point."""


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Find the constants of outer graphs that are dequantized in inner ones."""
    if model.ir_version < _FIRST_IR:
        return NOTHING_HERE
    reads = [read for graph in inner_graphs(model.graph) for node in graph for read in _outer_reads(node, graph)]

    def edit() -> list[ir.Node]:
        copies: dict[tuple[ir.Graph, ir.Value], ir.Value] = {}
        for graph, node, position, constant in reads:
            if (graph, constant) not in copies:
                copies[graph, constant] = _copy_into(graph, constant, ctx)
            node.replace_input_with(position, copies[graph, constant])
        return []

    return Patch("gave bodies their own copies of the constants that they dequantize", edit) if reads else NOTHING_HERE


def _outer_reads(node: ir.Node, graph: ir.Graph) -> list[tuple[ir.Graph, ir.Node, int, ir.Value]]:
    """Return which of the constants that ``node`` dequantizes are in an outer graph: graph, reader, position, constant."""
    if node.op_type != "DequantizeLinear" or node.domain != "":
        return []
    constants = [through_identity(value) for value in node.inputs[:_OPERANDS]]
    if not all(value is not None and is_constant(value) for value in constants):
        return []
    numbered = enumerate(constants)
    return [(graph, node, position, value) for position, value in numbered if value is not None and value.graph is not graph]


def _copy_into(graph: ir.Graph, constant: ir.Value, ctx: Context) -> ir.Value:
    tensor = copy.copy(ir.convenience.get_const_tensor(constant))
    assert tensor is not None
    tensor.name = ctx.names.fresh(constant.name or "weights")
    own = ir.Value(name=tensor.name, shape=ir.Shape(tensor.shape.numpy()), type=ir.TensorType(tensor.dtype), const_value=tensor)
    graph.register_initializer(own)
    return own


RULE = Rule("own-dequantized-weights", "tidy", "model", check, use="always")
