"""Walks over a ``ModelProto``: every graph with words for where it is, and every dense tensor."""

from collections.abc import Iterator

import onnx

from rewrites.base.errors import UnsupportedModel

__all__ = ["DEEPEST", "Body", "bodies_in", "locations_in", "tensors_in"]

DEEPEST = 31
"""How deep graphs may be nested: protobuf reads messages up to 100 deep, three for each graph, and some in the innermost."""

Body = onnx.GraphProto | onnx.FunctionProto


def bodies_in(proto: onnx.ModelProto) -> Iterator[tuple[Body, str]]:
    """Yield the main graph, the functions, and all graphs nested in them, each with words for where it is.

    Raises UnsupportedModel where they are nested too deep for a file.
    """
    yield from _nested(proto.graph, "the main graph")
    for function in proto.functions:
        yield from _nested(function, f"function {function.domain}::{function.name}")


def _nested(body: Body, where: str, depth: int = 0) -> Iterator[tuple[Body, str]]:
    if depth > DEEPEST:
        raise UnsupportedModel(f"The graphs of a model are nested more than {DEEPEST} deep, deeper than a file can hold.")
    yield body, where
    for node in body.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _nested(attribute.g, f"{attribute.name} of {node.op_type} {node.name!r} in {where}", depth + 1)
            elif attribute.type == onnx.AttributeProto.GRAPHS:
                for number, graph in enumerate(attribute.graphs):
                    place = f"{attribute.name}[{number}] of {node.op_type} {node.name!r} in {where}"
                    yield from _nested(graph, place, depth + 1)


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
    """Return the files that external data is in, as the model names them, each once."""
    found = (entry for tensor in tensors_in(proto) for entry in tensor.external_data if entry.key == "location")
    return sorted({entry.value for entry in found})
