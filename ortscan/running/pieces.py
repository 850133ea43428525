"""Cut a very large model into pieces that onnxruntime loads one after the other.

    x ─► a ─► b ─► c ─► y    ->    x ─► a ─► b        b ─► c ─► y

This saves resources: onnxruntime needs 3 KB of memory for each node of a loaded model, and loading time grows with the square of
the number of nodes.

The inputs and outputs of a piece have the types that the model declares for these values. Therefore onnxruntime checks a node in a
piece in the same way as in the whole model. But onnxruntime cannot compare the names of values in different pieces. Therefore
a model is not cut if a nested graph reuses a name of the graph around it.
"""

from collections.abc import Iterator, Sequence

import onnx

from ortscan.base.proto_graphs import bodies_of
from ortscan.running.graph_index import names_read

__all__ = ["pieces_of"]

_NODES = 25_000
"""The most nodes of a piece, including the nodes in bodies. A piece with only one node of the main graph may have more."""


def pieces_of(proto: onnx.ModelProto) -> Iterator[onnx.ModelProto] | None:
    """Cut ``proto`` into models that together have all its nodes. Return None if that is impossible."""
    graph = proto.graph
    if _has_shadowing(graph, set()):
        return None
    nodes = list(graph.node)
    bounds = _bounds(nodes)
    constants = {node.output[0]: node for node in nodes if node.op_type == "Constant" and node.output}
    weights = {tensor.name: tensor for tensor in graph.initializer}
    last = dict[str, int]()
    for number, (start, end) in enumerate(bounds):
        for node in nodes[start:end]:
            last.update(dict.fromkeys(names_read(node), number))
    last.update(dict.fromkeys((info.name for info in graph.output), len(bounds)))
    crossing = {
        name
        for number, (start, end) in enumerate(bounds)
        for node in nodes[start:end]
        for name in node.output
        if last.get(name, -1) > number and name not in constants
    }
    infos = (info for infos in (graph.input, graph.output, graph.value_info) for info in infos)
    listed = {info.name for info in graph.input}
    types = {info.name: info.type for info in infos if (info.name in crossing or info.name in listed) and info.HasField("type")}
    if not crossing <= types.keys():
        return None

    def piece(own: Sequence[onnx.NodeProto]) -> onnx.ModelProto:
        model = onnx.ModelProto(ir_version=proto.ir_version, opset_import=proto.opset_import, functions=proto.functions)
        model.graph.name = graph.name
        results = dict.fromkeys(name for node in own for name in node.output if name)
        read = dict.fromkeys(name for node in own for name in names_read(node) if name not in results)
        model.graph.node.extend(constants[name] for name in read if name in constants)
        model.graph.node.extend(own)
        model.graph.initializer.extend(weights[name] for name in read if name in weights)
        inputs = [name for name in read if name in types and name not in constants and name not in weights]
        model.graph.input.extend(onnx.ValueInfoProto(name=name, type=types[name]) for name in inputs)
        outputs = [name for name in results if name in types] or list(results)[:1]
        model.graph.output.extend(onnx.ValueInfoProto(name=name, type=types.get(name)) for name in outputs)
        return model

    return (piece(nodes[start:end]) for start, end in bounds)


def _bounds(nodes: Sequence[onnx.NodeProto]) -> list[tuple[int, int]]:
    bounds, start, size = [], 0, 0
    for position, node in enumerate(nodes):
        count = _count(node)
        if size and size + count > _NODES:
            bounds.append((start, position))
            start, size = position, 0
        size += count
    return [*bounds, (start, len(nodes))]


def _count(node: onnx.NodeProto) -> int:
    return 1 + (sum(_count(inner) for body in bodies_of(node) for inner in body.node) if node.attribute else 0)


def _has_shadowing(graph: onnx.GraphProto, outer: set[str]) -> bool:
    """Return True if ``graph``, or a graph in it, reuses a name of a graph around it for another value.

    ``outer`` has the names in the graphs around ``graph``.
    """
    own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    own.update(name for node in graph.node for name in node.output)
    own.discard("")
    if own & outer:
        return True
    outer |= own
    has_shadowing = any(_has_shadowing(body, outer) for node in graph.node if node.attribute for body in bodies_of(node))
    outer -= own
    return has_shadowing
