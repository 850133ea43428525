"""Walk over the graphs of a ModelProto. Copy it without negative sizes or without some weights.

Some exporters write a negative size for a free dimension. onnxruntime reads it as free, but onnx's inference uses the number.

Works around ONNX-NEGATIVE-SIZE.
"""

import math
from collections.abc import Collection, Iterable, Iterator

import onnx

__all__ = [
    "all_graphs",
    "bodies_of",
    "default_opset",
    "has_negative_sizes",
    "with_large_weights_as_inputs",
    "without_initializers",
    "without_negative_sizes",
    "write_negative_sizes_as_free",
]

_MOST_ELEMENTS = 256


def all_graphs(proto: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yield the main graph and every graph nested in it or in a function, outer graphs first."""
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
    """Yield the graphs in the attributes of ``node``."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def default_opset(imports: Iterable[onnx.OperatorSetIdProto]) -> int | None:
    """Return the version of the default domain among ``imports``, or None if that domain is not imported."""
    return max((entry.version for entry in imports if entry.domain in ("", "ai.onnx")), default=None)


def without_negative_sizes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy in which negative sizes are free, or ``proto`` itself if it has no negative size."""
    if not any(has_negative_sizes(info.type) for info in _infos(proto)):
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for info in _infos(copy):
        write_negative_sizes_as_free(info.type)
    return copy


def has_negative_sizes(declared: onnx.TypeProto) -> bool:
    """Return True if a type declares a negative size."""
    return any(dim.dim_value < 0 for dim in _dims(declared))


def write_negative_sizes_as_free(declared: onnx.TypeProto) -> None:
    """Make the negative sizes of a type free."""
    for dim in _dims(declared):
        if dim.dim_value < 0:
            dim.ClearField("dim_value")


def _infos(proto: onnx.ModelProto) -> Iterator[onnx.ValueInfoProto]:
    for graph in all_graphs(proto):
        yield from (*graph.input, *graph.output, *graph.value_info)


def _dims(declared: onnx.TypeProto) -> list[onnx.TensorShapeProto.Dimension]:
    match declared.WhichOneof("value"):
        case "tensor_type":
            return list(declared.tensor_type.shape.dim)
        case "sequence_type":
            return _dims(declared.sequence_type.elem_type)
        case "optional_type":
            return _dims(declared.optional_type.elem_type)
    return []


def without_initializers(proto: onnx.ModelProto, names: Collection[str]) -> onnx.ModelProto:
    """Return a copy of ``proto`` in which the initializers ``names`` of the main graph are inputs.

    The data of these initializers is not copied.
    """
    slim = onnx.ModelProto()
    for owner, copy, left_out in ((proto, slim, "graph"), (proto.graph, slim.graph, "initializer")):
        for field, value in owner.ListFields():
            if field.name == left_out:
                continue
            if hasattr(value, "extend"):
                getattr(copy, field.name).extend(value)
            elif hasattr(value, "CopyFrom"):
                getattr(copy, field.name).CopyFrom(value)
            else:
                setattr(copy, field.name, value)
    listed = {info.name for info in proto.graph.input}
    for tensor in proto.graph.initializer:
        if tensor.name not in names:
            slim.graph.initializer.append(tensor)
        elif tensor.name not in listed:
            slim.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    return slim


def with_large_weights_as_inputs(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of ``proto`` in which the large weights are inputs.

    A session of the copy loads faster, because it does not load these weights.
    """
    external = onnx.TensorProto.EXTERNAL
    initializers = proto.graph.initializer
    large = (tensor for tensor in initializers if math.prod(tensor.dims) > _MOST_ELEMENTS or tensor.data_location == external)
    return without_initializers(proto, {tensor.name for tensor in large})
