"""Walking all graphs of a ModelProto: the main graph, bodies at any depth, and the bodies inside model functions."""

from collections.abc import Iterable, Iterator

import onnx

from ortscan.opsets import newest_opset

__all__ = ["all_graphs", "all_nodes", "bodies_of", "default_opset"]


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


def all_nodes(proto: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, int]]:
    """Every node of the model with the version of the default operator set that applies to it.

    Where a model imports only other sets, that is the newest for onnxruntime.
    """
    version = default_opset(proto.opset_import)
    if version is None:
        version = newest_opset() if proto.opset_import else 1
    yield from ((node, version) for node in _nodes(proto.graph.node))
    for function in proto.functions:
        version = default_opset(function.opset_import) or version
        yield from ((node, version) for node in _nodes(function.node))


def bodies_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs ``node`` holds."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def default_opset(imports: Iterable[onnx.OperatorSetIdProto]) -> int | None:
    """The version of the default domain among ``imports``, None where it is not there."""
    return max((entry.version for entry in imports if entry.domain in ("", "ai.onnx")), default=None)


def _nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        if node.attribute:
            for body in bodies_of(node):
                yield from _nodes(body.node)
