"""Walking the nodes of a ModelProto, each with the operator set that applies to it."""

from collections.abc import Iterable, Iterator

import onnx

from ortscan.base.proto_graphs import bodies_of, default_opset
from ortscan.ort.opsets import newest_opset

__all__ = ["all_nodes"]


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


def _nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        if node.attribute:
            for body in bodies_of(node):
                yield from _nodes(body.node)
