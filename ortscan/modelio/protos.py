"""Walk over a ``ModelProto``: all graphs with their locations, all dense tensors, and map types.

``onnx_ir`` does not support map types, such as the output type of ``ZipMap`` of ``ai.onnx.ml``. Values of these types have no type
while the model is loaded. The interface restores the declared types of the model's inputs and outputs.
"""

from collections.abc import Iterator

import onnx

from rewrites.base.errors import UnsupportedModel

__all__ = ["DEEPEST", "Body", "bodies_in", "hide_map_types", "holds_map", "locations_in", "tensors_in"]

DEEPEST = 31
"""The deepest nesting of graphs. protobuf reads 100 levels of messages; a graph needs three, and the innermost needs more."""

Body = onnx.GraphProto | onnx.FunctionProto


def bodies_in(proto: onnx.ModelProto) -> Iterator[tuple[Body, str]]:
    """Yield the main graph, the functions and all graphs in them, each with a phrase for its location.

    Raise UnsupportedModel if graphs are nested so deep that no file can hold the model.
    """
    yield from _nested(proto.graph, "the main graph")
    for function in proto.functions:
        yield from _nested(function, f"function {function.domain}::{function.name}")


def _nested(body: Body, where: str, depth: int = 0) -> Iterator[tuple[Body, str]]:
    if depth > DEEPEST:
        raise UnsupportedModel(f"The graphs of a model are nested more than {DEEPEST} deep, which no file can hold.")
    yield body, where
    for node in body.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _nested(attribute.g, f"{attribute.name} of {node.op_type} {node.name!r} in {where}", depth + 1)
            elif attribute.type == onnx.AttributeProto.GRAPHS:
                for number, graph in enumerate(attribute.graphs):
                    label = f"{attribute.name}[{number}] of {node.op_type} {node.name!r} in {where}"
                    yield from _nested(graph, label, depth + 1)


def tensors_in(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every dense tensor: initializers of all graphs, and tensors in attributes of all nodes."""
    for body, _ in bodies_in(proto):
        if isinstance(body, onnx.GraphProto):
            yield from body.initializer
        for node in body.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.TENSOR and not attribute.ref_attr_name:
                    yield attribute.t
                elif attribute.type == onnx.AttributeProto.TENSORS:
                    yield from attribute.tensors


def locations_in(proto: onnx.ModelProto) -> list[str]:
    """Return the locations of external data as the model names them, sorted and without repetitions."""
    entries = (entry for tensor in tensors_in(proto) for entry in tensor.external_data)
    return sorted({entry.value for entry in entries if entry.key == "location"})


def holds_map(kind: onnx.TypeProto) -> bool:
    """Return True if ``kind`` is a map, or a sequence or optional that contains maps."""
    if kind.HasField("sequence_type"):
        return holds_map(kind.sequence_type.elem_type)
    if kind.HasField("optional_type"):
        return holds_map(kind.optional_type.elem_type)
    return bool(kind.HasField("map_type"))


def hide_map_types(proto: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """Return a copy of ``proto`` without map types, or ``proto`` itself if it has none.

    Raise UnsupportedModel if a nested graph takes or returns a map.
    """
    if not any(holds_map(info.type) for body, _ in bodies_in(proto) for info in _infos(body)):
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for body, where in bodies_in(copy):
        for number in reversed(range(len(body.value_info))):
            if holds_map(body.value_info[number].type):
                del body.value_info[number]
        for info in _infos(body):
            if not holds_map(info.type):
                continue
            if body is not copy.graph:
                raise UnsupportedModel(f"{name}: {info.name!r} in {where} is a map, which cannot be represented there.")
            info.ClearField("type")
    return copy


def _infos(body: onnx.GraphProto | onnx.FunctionProto) -> list[onnx.ValueInfoProto]:
    if isinstance(body, onnx.FunctionProto):
        return list(body.value_info)
    return [*body.input, *body.output, *body.value_info]
