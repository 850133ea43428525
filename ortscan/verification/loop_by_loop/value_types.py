"""The types of all values of a main graph, as onnx infers them without being shown large weights."""

import math

import onnx

from ortscan.running.joined_vectors import has_long_vectors
from rewrites.base.raised_by import is_raised_by

__all__ = ["element_types", "value_types"]

_SMALL = 256


def value_types(proto: onnx.ModelProto) -> dict[str, onnx.TypeProto]:
    """Return the types of tensors of known rank: inputs, outputs and what lies between."""
    return {name: declared for name, declared in _types(proto).items() if _has_rank(declared)}


def element_types(proto: onnx.ModelProto) -> dict[str, int]:
    """Return the element types of tensors: inputs, outputs, initializers and what lies between."""
    found = {name: declared.tensor_type.elem_type for name, declared in _types(proto).items() if declared.HasField("tensor_type")}
    return {**found, **{tensor.name: tensor.data_type for tensor in proto.graph.initializer}}


def _types(proto: onnx.ModelProto) -> dict[str, onnx.TypeProto]:
    hollow = onnx.ModelProto(ir_version=max(proto.ir_version, 4), opset_import=proto.opset_import, functions=proto.functions)
    graph, given = hollow.graph, proto.graph
    graph.name = given.name
    for mine, theirs in ((graph.node, given.node), (graph.input, given.input), (graph.output, given.output)):
        mine.extend(theirs)
    graph.value_info.extend(given.value_info)
    listed = {value.name for value in given.input}
    for tensor in given.initializer:
        if math.prod(tensor.dims) <= _SMALL and tensor.data_location != onnx.TensorProto.EXTERNAL:
            graph.initializer.append(tensor)
        elif tensor.name not in listed:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    try:
        hollow = onnx.shape_inference.infer_shapes(hollow, data_prop=not has_long_vectors(hollow))
        graph = hollow.graph
    except Exception as error:
        if not is_raised_by(error, "onnx") and not isinstance(error, MemoryError):
            raise
    values = (*graph.input, *graph.output, *graph.value_info)
    return {value.name: value.type for value in values}


def _has_rank(declared: onnx.TypeProto) -> bool:
    return bool(declared.HasField("tensor_type") and declared.tensor_type.HasField("shape"))
