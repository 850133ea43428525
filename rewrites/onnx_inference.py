"""onnx's own inference on a model of ours, in time and memory that grow with the number of values alone.

Weights are shown to onnx as inputs, since no shape depends on what large ones hold; small ones it sees.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import onnx
import onnx_ir as ir

from rewrites.errors import UnsupportedModel
from rewrites.unknown_bounds import hide_unknown_bounds

__all__ = ["infer_by_onnx"]

_LARGE_BYTES = 1000
_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


def infer_by_onnx(model: ir.Model, *, data_prop: bool) -> None:
    """Set the types and shapes that onnx infers, in all graphs of ``model``; nothing is changed where onnx gives up."""
    try:
        with _weights_as_inputs(model.graph):
            proto = ir.to_proto(model)
        hide_unknown_bounds(proto)
        inferred = _inferred(proto, data_prop)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ir.serde.SerdeError, ValueError, RuntimeError):
        return
    _take_over(model.graph, inferred.graph)


def _inferred(proto: onnx.ModelProto, data_prop: bool) -> onnx.ModelProto:
    try:
        return onnx.shape_inference.infer_shapes(proto, check_type=False, strict_mode=False, data_prop=data_prop)
    except MemoryError:  # what vectors hold may be longer than memory; onnx has given back what it took
        pass
    try:
        return onnx.shape_inference.infer_shapes(proto, check_type=False, strict_mode=False, data_prop=False)
    except MemoryError:
        raise UnsupportedModel("The model asks onnx's inference for more memory than there is.") from None


def _take_over(graph: ir.Graph, inferred: onnx.GraphProto) -> None:
    """Note the types of ``inferred`` at the values of ``graph``; those of sequences and optionals say nothing of tensors."""
    found = {info.name: info.type for infos in (inferred.input, inferred.output, inferred.value_info) for info in infos}
    for value in graph.inputs:
        _note(value, found.get(value.name or ""))
    for node, proto in zip(graph, inferred.node, strict=True):
        for value in node.outputs:
            _note(value, found.get(value.name or ""))
        if any(attribute.type in _GRAPHS for attribute in node.attributes.values()):
            for attribute in proto.attribute:
                inner = node.attributes[attribute.name]
                if inner.type == ir.AttributeType.GRAPH and not inner.is_ref():
                    _take_over(inner.as_graph(), attribute.g)
                elif inner.type == ir.AttributeType.GRAPHS and not inner.is_ref():
                    for one, other in zip(inner.as_graphs(), attribute.graphs, strict=True):
                        _take_over(one, other)


def _note(value: ir.Value, kind: onnx.TypeProto | None) -> None:
    if kind is None or kind.WhichOneof("value") not in ("tensor_type", "sparse_tensor_type"):
        return
    shape, found = ir.serde.deserialize_type_proto_for_shape(kind), ir.serde.deserialize_type_proto_for_type(kind)
    if shape is not None and value.shape != shape:
        value.shape = shape
    if found is not None and value.dtype != found.dtype:
        value.dtype = found.dtype


@contextmanager
def _weights_as_inputs(graph: ir.Graph) -> Iterator[None]:
    inputs, weights = list(graph.inputs), list(graph.initializers.values())
    listed = set(inputs)
    for value in weights:
        if value.const_value is not None:
            value.shape = ir.Shape(value.const_value.shape.numpy()) if value.shape is None else value.shape
            value.dtype = value.const_value.dtype if value.dtype is None else value.dtype
    try:
        graph.inputs.extend(value for value in weights if value not in listed)
        for value in weights:
            if value.const_value is None or value.const_value.nbytes > _LARGE_BYTES:
                del graph.initializers[value.name or ""]
        yield
    finally:
        graph.initializers.clear()
        for value in weights:
            graph.initializers.add(value)
        graph.inputs.clear()
        graph.inputs.extend(inputs)
