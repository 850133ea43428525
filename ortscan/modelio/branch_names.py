"""Refuses models in which an initializer of one branch has the name of a value that the other branch reads from around the If.

    k = {1}; If (c) <then = () <k = {2}> { a = Mul (x, k) }, else = () { b = Add (x, k) }>    the product by 1, on onnxruntime

onnx wants other names in graphs inside than around them, but does not look. onnxruntime hands what either branch reads to both,
and there it takes the place of the initializer.

Works round ORT-BRANCH-INITIALIZER.
"""

from collections.abc import Iterator

import onnx_ir as ir

from rewrites.base.errors import UnsupportedModel
from rewrites.base.plain_text import shown
from rewrites.graph.walk import all_nodes, inner_graphs, node_graphs

__all__ = ["refuse_ambiguous_names"]


def refuse_ambiguous_names(model: ir.Model, name: str) -> None:
    """Raise UnsupportedModel where there is such an initializer. In functions, onnxruntime gives them names of their own."""
    for node in all_nodes(model.graph):
        branches = node_graphs(node) if node.op_type == "If" and node.domain == "" else ()
        for branch in branches:
            taken = branch.initializers.keys()
            for other in branches:
                clash = next((read for read in _captured(other) if read in taken), None) if taken and other is not branch else None
                if clash is not None:
                    raise UnsupportedModel(
                        f"{name}: the initializer {shown(clash)} of a branch of If {shown(node.name)} has the name of a value that "
                        "its other branch reads from around it, and which of them is meant is not clear."
                    )


def _captured(graph: ir.Graph) -> Iterator[str]:
    """Yield the names of what ``graph`` reads from around it."""
    own = {graph, *inner_graphs(graph)}
    for node in all_nodes(graph):
        yield from (value.name or "" for value in node.inputs if value is not None and value.graph not in own)
