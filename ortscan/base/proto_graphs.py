"""Walking the graphs of a ModelProto: the main graph, bodies at any depth, and the bodies inside model functions."""

from collections.abc import Iterable, Iterator

import onnx

__all__ = ["all_graphs", "bodies_of", "default_opset"]


def all_graphs(proto: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The main graph and every graph inside it or inside a function, outer ones first."""
    pending = [proto.graph]
    for function in proto.functions:
        for node in function.node:
            pending.extend(bodies_of(node))
    while pending:
        graph = pending.pop()
        yield graph
        for node in graph.node:
            if node.attribute:
                pending.extend(bodies_of(node))


def bodies_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs ``node`` holds."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def default_opset(imports: Iterable[onnx.OperatorSetIdProto]) -> int | None:
    """The version of the default domain among ``imports``, None where it is not there."""
    return max((entry.version for entry in imports if entry.domain in ("", "ai.onnx")), default=None)
