"""Puts one value in the place of another, graph outputs included, without changing a public name, type or shape."""

import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.names import Names

__all__ = ["can_copy", "replace_output", "replace_value", "take_over"]


def can_copy(value: ir.Value, opset: int) -> bool:
    """Whether an Identity of this opset takes ``value``: tensors always, sequences and optionals (or who knows what) later on."""
    if isinstance(value.type, ir.TensorType):
        return True
    return opset >= (since.IDENTITY_OF_SEQUENCES if isinstance(value.type, ir.SequenceType) else since.IDENTITY_OF_OPTIONALS)


def replace_value(old: ir.Value, new: ir.Value, names: Names) -> None:
    """Let every use of ``old`` read ``new``; where ``old`` is a graph output, the output keeps its name, type and shape."""
    if old.is_graph_output():
        replace_output(old, new, names)
    for node, index in old.uses():
        node.replace_input_with(index, new)


def replace_output(old: ir.Value, new: ir.Value, names: Names) -> None:
    """Let a graph return ``new`` where it returned ``old``, under the same name, type and shape; ``old`` loses its name.

    ``new`` takes the output's place itself where it is a node's result in the same graph and not an output already; else an
    Identity copies it, so that every output of a body has a node of its own. What a graph lists twice stays listed twice.
    """
    graph = old.graph
    assert isinstance(graph, ir.Graph)
    name, kind, shape = old.name, old.type, old.shape
    old.name = names.fresh(name or "value")
    producer = new.producer()
    direct = producer is not None and producer.graph is graph and not new.is_graph_output()
    stand_in = new if direct else _copy(new, graph, names)
    for place in [place for place, value in enumerate(graph.outputs[:]) if value is old]:
        graph.outputs[place] = stand_in
    stand_in.name = name
    stand_in.type = kind if kind is not None else new.type
    stand_in.shape = shape if shape is not None else new.shape


def take_over(old: ir.Value, new: ir.Value, names: Names) -> None:
    """Replace ``old`` by ``new`` and let ``new`` have its name, type and shape too."""
    public, old_name, new_name = old.is_graph_output(), old.name, new.name
    new.type = old.type if old.type is not None else new.type
    new.shape = old.shape if old.shape is not None else new.shape
    replace_value(old, new, names)
    if not public:
        old.name, new.name = new_name, old_name


def _copy(value: ir.Value, graph: ir.Graph, names: Names) -> ir.Value:
    node = ir.Node("", "Identity", [value], num_outputs=1, name=names.fresh("node_Identity"))
    node.outputs[0].name = names.fresh(value.name or "value")
    graph.append(node)
    return node.outputs[0]
