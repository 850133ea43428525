"""What is done to a model before the first rule, and after the last."""

import onnx_ir as ir

from rewrites.context import Context
from rewrites.inference import infer_model
from rewrites.loops import is_loop
from rewrites.moving import lift_initializers, node_graphs, remove_nodes
from rewrites.normal_form.dead_code import unread_nodes

__all__ = ["has_loops", "prepare", "tidy"]


def has_loops(model: ir.Model) -> bool:
    """Whether any graph of ``model`` (functions aside) holds a Scan or Loop."""
    return any(is_loop(node) for node in model.graph.all_nodes())


def prepare(ctx: Context) -> None:
    """Bring nodes into topological order, infer types and shapes, make the weights of loop bodies initializers of the main graph.

    Some converters leave nodes out of order, which onnxruntime accepts and the checker does not.
    """
    graph = ctx.model.graph
    graph.sort()
    _unshadow(graph, set(), ctx)
    for one in [graph, *graph.subgraphs()]:
        for value in one.initializers.values():
            if value.const_value is not None and not value.is_graph_input():
                value.shape = ir.Shape(value.const_value.shape.numpy())
    infer_model(ctx.model)
    for node in graph.all_nodes():
        if is_loop(node):
            for body in node_graphs(node):
                lift_initializers(body, graph, ctx.names)


def _unshadow(graph: ir.Graph, around: set[str], ctx: Context) -> None:
    """Rename body values and nodes that have the name of something in a graph around them.

    The names of a body's inputs and outputs are its own affair; those of the main graph are never changed.
    """
    own = [*graph.inputs, *(value for value in graph.initializers.values() if not value.is_graph_input())]
    own += [value for node in graph for value in node.outputs if value.name]
    for value in own:
        if value.name in around:
            name = ctx.names.fresh(value.name or "value")
            if value.is_initializer():
                graph.initializers.pop(value.name or "")
                value.name = name
                graph.register_initializer(value)
            value.name = name
    visible = around | {value.name or "" for value in own}
    for node in graph:
        for inner in node_graphs(node):
            _unshadow(inner, visible, ctx)


def tidy(ctx: Context) -> None:
    """Drop what the rewrites left without a reader: nodes of the main graph, and initializers that are not inputs."""
    graph = ctx.model.graph
    remove_nodes(unread_nodes(graph))
    for name, value in list(graph.initializers.items()):
        if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
            del graph.initializers[name]
    ctx.constants.drop_unused()
