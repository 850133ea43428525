"""What must hold between any two patches; checked in tests and by ``debug``."""

import onnx_ir as ir

from rewrites.errors import InvariantBroken
from rewrites.loops import is_loop, view
from rewrites.moving import node_graphs
from rewrites.normal_form.own_outputs import shared_outputs

__all__ = ["check_invariants"]


def check_invariants(model: ir.Model, after: str) -> None:
    """Raise InvariantBroken, naming ``after``, where the model is not sound.

    Every value is defined before it is read, in the graph or one around it; names are unique in a scope; every Scan body output
    has a node of its own; every loop can be read; constants stand where they are registered.
    """
    _check_graph(model.graph, {}, model.opset_imports.get("", 1), after)


def _check_graph(graph: ir.Graph, around: dict[ir.Value, str], opset: int, after: str) -> None:
    visible = dict(around)
    names = set(around.values())
    for entry in {*graph.inputs, *graph.initializers.values()}:
        _define(entry, visible, names, after)
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
            _check_graph(nested, visible, opset, after)
        if is_loop(node):
            loop = view(node, opset)
            if loop.kind == "Scan" and (shared := shared_outputs(loop.body)):
                raise InvariantBroken(f"after {after}: output {shared[0]} of the body of '{node.name}' has no node of its own")
        for value in node.outputs:
            if value.name:
                _define(value, visible, names, after)
    for value in graph.outputs:
        if value not in visible:
            raise InvariantBroken(f"after {after}: the output '{value.name}' of graph '{graph.name}' is not defined in it")


def _define(value: ir.Value, visible: dict[ir.Value, str], names: set[str], after: str) -> None:
    name = value.name or ""
    if name in names:
        raise InvariantBroken(f"after {after}: the name '{name}' is defined twice in one scope")
    names.add(name)
    visible[value] = name
