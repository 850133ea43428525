"""Keeps sizes that were built in from a branch that is not made for them.

    If(c) else: MatMul(x, w)    ->    If(c) else: MatMul(Reshape(x, Where(c, s, s)), w)      s: the sizes of x, which w does not fit

A model may have a branch for each of several sizes, and take one by another input. With one of the sizes built in, inference finds
the other branches contradict themselves, and onnxruntime refuses the model. Such a branch fails when it is run, as it did before.

Works round ORT-BRANCH-CONTRADICTION.
"""

import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.context import Context
from rewrites.graph.node_inference import contradicts
from rewrites.graph.values import static_dims
from rewrites.graph.walk import all_nodes, inner_graphs, node_graphs
from rewrites.loops import captured_values

__all__ = ["hide_sizes_from_branches"]


def hide_sizes_from_branches(ctx: Context) -> None:
    """Do so all over the model."""
    if ctx.opset < since.WHERE:
        return
    for node in list(all_nodes(ctx.model.graph)):
        condition = node.inputs[0] if node.op_type == "If" and node.domain == "" and node.inputs else None
        for branch in node_graphs(node) if condition is not None else ():
            inside = list(all_nodes(branch))
            if condition is not None and any(contradicts(one, ctx.model.opset_imports, ctx.model.ir_version) for one in inside):
                _hide(branch, inside, condition, ctx)


def _hide(branch: ir.Graph, inside: list[ir.Node], condition: ir.Value, ctx: Context) -> None:
    b, here = ctx.builder(), set(inside)
    first = next(iter(branch))
    for value in captured_values(branch):
        known = [] if value.shape is None or value.is_initializer() else [dim for dim in value.shape.dims if isinstance(dim, int)]
        if not known or value is condition or not isinstance(value.type, ir.TensorType):
            continue
        dims = static_dims(value)
        sizes = b.op("Shape", value) if dims is None else b.const(list(dims))
        hidden = b.op("Reshape", value, b.op("Where", condition, sizes, sizes))
        for user, index in value.uses():
            if user in here:
                user.replace_input_with(index, hidden)
    for graph in inner_graphs(branch):
        for value in graph.inputs:
            value.shape = None
    for node in inside:
        for value in node.outputs:
            value.shape = None
    b.insert_before(first)
