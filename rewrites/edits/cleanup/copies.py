"""Copies of values, by Identity or a Cast to the same type, and reading what they copy instead."""

from collections.abc import Iterable

import onnx_ir as ir

from rewrites.graph.moving import remove_nodes
from rewrites.graph.names import Names
from rewrites.graph.replace import replace_value

__all__ = ["copies_among", "drop_copies"]


def copies_among(nodes: Iterable[ir.Node]) -> list[ir.Node]:
    """Return those of ``nodes`` that copy a value whose users could read it itself."""
    return [node for node in nodes if _is_copy(node) and (_may_go(node) or node.outputs[0].uses())]


def drop_copies(copies: Iterable[ir.Node], names: Names) -> None:
    """Let what reads ``copies``, as ``copies_among`` gives them, read what they copy, and remove those that may go."""
    for node in copies:
        source, copy = node.inputs[0], node.outputs[0]
        assert source is not None
        if not _may_go(node):
            for user, index in copy.uses():
                user.replace_input_with(index, source)
            continue
        if source.shape is None and source.type is not None and source.producer() is not None:
            source.shape = copy.shape
        replace_value(copy, source, names)
        remove_nodes([node])


def _is_copy(node: ir.Node) -> bool:
    if node.domain != "" or node.inputs[:1] in ((), (None,)):
        return False
    source = node.inputs[0]
    if node.op_type == "Cast" and source is not None and source.dtype is not None:
        return node.attributes["to"].as_int() == source.dtype.value
    return node.op_type == "Identity"


def _may_go(node: ir.Node) -> bool:
    return not node.outputs[0].is_graph_output() or _source_may_return(node)


def _source_may_return(node: ir.Node) -> bool:
    source = node.inputs[0]
    producer = source.producer() if source is not None else None
    return producer is not None and producer.graph is node.graph and source is not None and not source.is_graph_output()
