"""Replaces an If that has a constant condition by the branch that runs.

y = If(true) then () => (f(x)) else () => (g(x))    ->    y = f(x)
"""

from collections.abc import Iterable

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.replace import can_copy, lift_initializers, move_before, remove_nodes, replace_value
from rewrites.graph.values import const_scalar
from rewrites.graph.walk import node_graphs

__all__ = ["constant_branch", "inline_constant_branches", "inline_ifs_among", "is_if"]


def is_if(node: ir.Node) -> bool:
    """Return True if ``node`` is an If of the standard operator set."""
    return node.op_type == "If" and node.domain == ""


def inline_constant_branches(graph: ir.Graph, ctx: Context) -> int:
    """Replace each If with a constant condition by its branch, also in nested graphs.

    Return the number of replaced Ifs.
    """
    count = 0
    nodes: Iterable[ir.Node] = list(graph)
    while nodes:
        inlined: list[ir.Node] = []
        for node in nodes:
            branch_nodes = _inline(node, ctx) if is_if(node) else None
            if branch_nodes is not None:
                count += 1
                inlined += branch_nodes
                continue
            count += sum(inline_constant_branches(nested, ctx) for nested in node_graphs(node))
        nodes = inlined
    return count


def inline_ifs_among(nodes: Iterable[ir.Node], ctx: Context) -> tuple[list[ir.Node], int]:
    """Replace each If with a constant condition among ``nodes`` by the nodes of its branch.

    Return the resulting nodes and the number of replaced Ifs.
    """
    result: list[ir.Node] = []
    count = 0
    for node in nodes:
        branch_nodes = _inline(node, ctx) if is_if(node) else None
        if branch_nodes is None:
            result.append(node)
        else:
            count += 1
            result += branch_nodes
    return result, count


def constant_branch(node: ir.Node, ctx: Context) -> ir.Graph | None:
    """Return the branch that the If ``node`` always runs.

    Return None if the condition is not constant, or if the branch cannot replace the If.
    """
    condition = const_scalar(node.inputs[0])
    if condition is None or node.graph is None:
        return None
    attribute = node.attributes.get("then_branch" if condition else "else_branch")
    if attribute is None or attribute.is_ref() or len(attribute.as_graph().outputs) != len(node.outputs):
        return None
    branch = attribute.as_graph()
    copied = any(value.is_graph_output() for value in node.outputs)
    return branch if not copied or all(can_copy(value, ctx.opset) for value in branch.outputs) else None


def _inline(node: ir.Node, ctx: Context) -> list[ir.Node] | None:
    """Replace the If ``node`` by the nodes of its constant branch. Return these nodes, or None."""
    branch = constant_branch(node, ctx)
    if branch is None:
        return None
    results = list(branch.outputs)
    branch.outputs[:] = []
    lift_initializers(branch, ctx.model.graph, ctx.names)
    nodes = list(branch)
    move_before(node, nodes, ctx.names)
    for old, new in zip(node.outputs, results, strict=True):
        if new.shape is None and new.producer() is not None:
            new.shape = old.shape
        replace_value(old, new, ctx.names)
    remove_nodes([node])
    return nodes
