"""Values that a graph declares in several places, with less said in some of them.

    body (i, bool c) => (c, y)    the output ``c`` is the input, and says nothing of its type

``onnx_ir`` keeps what was said last; onnxruntime what was said first, of inputs before outputs before all others, and so do we.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

import onnx
import onnx_ir as ir

__all__ = ["declare_as_first_said"]


def declare_as_first_said(model: ir.Model, proto: onnx.ModelProto) -> None:
    """Give outputs that ``proto``, from which ``model`` was just made, declares elsewhere too the first type and shape said."""
    pairs = [_pairs(proto.graph, model.graph)]
    pairs += [_nested(words.node, model.functions[words.domain, words.name, words.overload].graph) for words in proto.functions]
    for words, graph in chain.from_iterable(pairs):
        _declare(words, graph)


def _pairs(words: onnx.GraphProto, graph: ir.Graph) -> Iterator[tuple[onnx.GraphProto, ir.Graph]]:
    yield words, graph
    yield from _nested(words.node, graph)


def _nested(nodes: Iterable[onnx.NodeProto], graph: ir.Graph) -> Iterator[tuple[onnx.GraphProto, ir.Graph]]:
    for said, node in zip(nodes, graph, strict=True):
        for attribute in said.attribute:
            if attribute.ref_attr_name:
                continue
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _pairs(attribute.g, node.attributes[attribute.name].as_graph())
            elif attribute.type == onnx.AttributeProto.GRAPHS:
                for words, inner in zip(attribute.graphs, node.attributes[attribute.name].as_graphs(), strict=True):
                    yield from _pairs(words, inner)


def _declare(words: onnx.GraphProto, graph: ir.Graph) -> None:
    names = {value.name for value in graph.outputs}
    said: dict[str, list[onnx.TypeProto]] = {}
    for info in (*words.input, *words.output, *words.value_info):
        if info.name in names and info.HasField("type"):
            said.setdefault(info.name, []).append(info.type)
    for value in graph.outputs:
        types = said.get(value.name or "", [])
        if len(types) > 1 or (types and value.type is None):
            value.type = next((kind for one in types if (kind := _kind(one)) is not None), None)
            value.shape = next((shape for one in types if (shape := _shape(one)) is not None), None)


def _kind(said: onnx.TypeProto) -> ir.TypeProtocol | None:
    return ir.serde.deserialize_type_proto_for_type(said)


def _shape(said: onnx.TypeProto) -> ir.Shape | None:
    return ir.serde.deserialize_type_proto_for_shape(said)
