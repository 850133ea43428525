"""Cutting a very large model into pieces that onnxruntime loads one after the other.

    x ─► a ─► b ─► c ─► y    ->    x ─► a ─► b        b ─► c ─► y

What onnxruntime asks of a node it asks in a piece as well, since each gets values of the types that the model says they have. The
whole takes 3 KB a node, and time that grows with the square of the nodes of one graph. What it asks of names all over the model
must be known to hold: no model is cut in which a graph inside another uses a name of that.
"""

from collections.abc import Iterable, Iterator, Sequence

import onnx

from ortscan.base.proto_graphs import bodies_of
from ortscan.running.graph_index import names_read

__all__ = ["pieces_of"]

_NODES = 25_000
"""How many nodes a piece has, those of bodies included, unless one node alone has more."""


def pieces_of(proto: onnx.ModelProto) -> Iterator[onnx.ModelProto] | None:
    """Return models that together have all nodes of ``proto``, or None where it cannot be cut."""
    graph = proto.graph
    if _shadows(graph):
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
    return _pieces(proto, nodes, bounds, constants, weights, types)


def _pieces(
    proto: onnx.ModelProto,
    nodes: Sequence[onnx.NodeProto],
    bounds: Iterable[tuple[int, int]],
    constants: dict[str, onnx.NodeProto],
    weights: dict[str, onnx.TensorProto],
    types: dict[str, onnx.TypeProto],
) -> Iterator[onnx.ModelProto]:
    for start, end in bounds:
        own = nodes[start:end]
        piece = onnx.ModelProto(ir_version=proto.ir_version, opset_import=proto.opset_import, functions=proto.functions)
        piece.graph.name = proto.graph.name
        made = dict.fromkeys(name for node in own for name in node.output if name)
        read = dict.fromkeys(name for node in own for name in names_read(node) if name not in made)
        piece.graph.node.extend(constants[name] for name in read if name in constants)
        piece.graph.node.extend(own)
        piece.graph.initializer.extend(weights[name] for name in read if name in weights)
        given = [name for name in read if name in types and name not in constants and name not in weights]
        piece.graph.input.extend(onnx.ValueInfoProto(name=name, type=types[name]) for name in given)
        results = [name for name in made if name in types] or list(made)[:1]
        piece.graph.output.extend(onnx.ValueInfoProto(name=name, type=types.get(name)) for name in results)
        yield piece


def _bounds(nodes: Sequence[onnx.NodeProto]) -> list[tuple[int, int]]:
    """Return where pieces start and end."""
    found, start, size = [], 0, 0
    for position, node in enumerate(nodes):
        count = _count(node)
        if size and size + count > _NODES:
            found.append((start, position))
            start, size = position, 0
        size += count
    return [*found, (start, len(nodes))]


def _count(node: onnx.NodeProto) -> int:
    return 1 + (sum(_count(inner) for body in bodies_of(node) for inner in body.node) if node.attribute else 0)


def _shadows(graph: onnx.GraphProto) -> bool:
    """Whether a graph inside another gives a name to something that a graph around it has a value of."""
    around = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    around.update(name for node in graph.node for name in node.output)
    around.discard("")
    return any(_shadow(body, around) for node in graph.node if node.attribute for body in bodies_of(node))


def _shadow(body: onnx.GraphProto, around: set[str]) -> bool:
    own = {info.name for info in body.input} | {tensor.name for tensor in body.initializer}
    own.update(name for node in body.node for name in node.output)
    own.discard("")
    if own & around:
        return True
    around |= own
    found = any(_shadow(inner, around) for node in body.node if node.attribute for inner in bodies_of(node))
    around -= own
    return found
