"""Moves a constant into the body or branch that passes it to a function with a DequantizeLinear.

    w = initializer; ys = Scan(xs) { y = my.F (x, w) }    ->    ys = Scan(xs) { w = initializer; y = my.F (x, w) }
    with   F (a, b) => (p) { d = DequantizeLinear (b, s, z)  p = MatMul (a, d) }

Rules move the constants of a body to the main graph. onnxruntime inlines the function into the body, and then refuses the model,
because weights are not in the graph of their DequantizeLinear. A constant that other graphs read too is copied. Constants in files
stay, because a body cannot refer to a file.

Works around ORT-DEQUANTIZED-OUTER-WEIGHTS.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.replace import is_stored_in_main
from rewrites.graph.walk import all_nodes
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a body or branch passes constants of the main graph to such a function."""
    functions = _dequantizing_functions(model)
    reads: dict[tuple[ir.Graph, ir.Value], list[tuple[ir.Node, int]]] = {}
    for node in all_nodes(model.graph) if functions else ():
        graph = node.graph
        if node.op_identifier() in functions and isinstance(graph, ir.Graph) and graph is not model.graph:
            for index, value in enumerate(node.inputs):
                if value is not None and _is_movable(value, model.graph):
                    reads.setdefault((graph, value), []).append((node, index))

    def edit() -> list[ir.Node]:
        for (graph, value), uses in reads.items():
            data = value.const_value
            assert data is not None
            name = ctx.names.fresh(value.name or "constant")
            copy = ir.Value(name=name, type=value.type, shape=value.shape)
            copy.const_value = ir.Tensor(data.numpy(), dtype=data.dtype, shape=ir.Shape(data.shape.numpy()), name=name)
            graph.register_initializer(copy)
            for node, index in uses:
                node.replace_input_with(index, copy)
            if not value.uses():
                del model.graph.initializers[value.name or ""]
        return []

    return Patch("moved constants into bodies that dequantize them in a function", edit) if reads else NOTHING_HERE


def _dequantizing_functions(model: ir.Model) -> set[ir.OperatorIdentifier]:
    """Return the functions that have a DequantizeLinear, or call such a function."""
    dequantizing: set[ir.OperatorIdentifier] = set()
    waiting = dict(model.functions)
    while True:
        more = {
            key
            for key, function in waiting.items()
            if any(node.op_type == "DequantizeLinear" or node.op_identifier() in dequantizing for node in all_nodes(function))
        }
        if not more:
            return dequantizing
        dequantizing |= more
        waiting = {key: function for key, function in waiting.items() if key not in more}


def _is_movable(value: ir.Value, main: ir.Graph) -> bool:
    data = value.const_value
    return data is not None and data.dtype != ir.DataType.STRING and is_stored_in_main(value, main)


RULE = Rule("constants-of-calls", "tidy", "model", check, use="always")
