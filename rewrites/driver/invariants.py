"""Checks the invariants that must hold after each patch.

Tests and the option ``debug`` call the check.
"""

import onnx_ir as ir

from rewrites.base.errors import InvariantBroken
from rewrites.graph.walk import node_graphs
from rewrites.loops import is_loop, view
from rewrites.loops.own_results import outputs_without_own_node

__all__ = ["check_invariants"]


def check_invariants(model: ir.Model, after: str) -> None:
    """Raise InvariantBroken if ``model`` is inconsistent.

    This is the case if a node reads an undefined value, two values or nodes share a name, an output of a Scan body has no node of
    its own, or a loop is invalid. ``after`` describes the last change for the message.
    """
    _check_graph(model.graph, set(), set(), model.opset_imports.get("", 1), after)


def _check_graph(graph: ir.Graph, visible: set[ir.Value], names: set[str], opset: int, after: str) -> None:
    """Check ``graph`` and its nested graphs.

    ``visible``: the values of the outer graphs. ``names``: their names. Both sets are extended during the check, and restored
    afterwards.
    """
    own: list[ir.Value] = []
    for entry in {*graph.inputs, *graph.initializers.values()}:
        own.append(_define(entry, visible, names, after))
    for name, weight in graph.initializers.items():
        if weight.name != name:
            raise InvariantBroken(f"after {after}: initializer '{weight.name}' is registered as '{name}'")
    node_names = [node.name for node in graph if node.name]
    if len(node_names) != len(set(node_names)):
        raise InvariantBroken(f"after {after}: two nodes of the graph '{graph.name}' share a name")
    for node in graph:
        for value in node.inputs:
            if value is not None and value not in visible:
                raise InvariantBroken(
                    f"after {after}: {node.op_type} '{node.name}' reads '{value.name}', which is not defined there"
                )
        for nested in node_graphs(node):
            _check_graph(nested, visible, names, opset, after)
        if is_loop(node):
            loop = view(node, opset)
            if loop.kind == "Scan" and (shared := outputs_without_own_node(loop.body)):
                raise InvariantBroken(f"after {after}: output {shared[0]} of the body of '{node.name}' has no node of its own")
        for value in node.outputs:
            if value.name:
                own.append(_define(value, visible, names, after))
    for value in graph.outputs:
        if value not in visible:
            raise InvariantBroken(f"after {after}: the output '{value.name}' of graph '{graph.name}' is not defined in it")
    visible.difference_update(own)
    names.difference_update(value.name or "" for value in own)


def _define(value: ir.Value, visible: set[ir.Value], names: set[str], after: str) -> ir.Value:
    name = value.name or ""
    if name in names:
        raise InvariantBroken(f"after {after}: the name '{name}' is defined twice in one scope")
    names.add(name)
    visible.add(value)
    return value
