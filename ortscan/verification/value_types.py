"""The types of all values of a main graph, as onnx infers them without being shown large weights."""

import math

import onnx

from rewrites.raised_by import is_raised_by

__all__ = ["value_types"]

_SMALL = 256


def value_types(proto: onnx.ModelProto) -> dict[str, onnx.TypeProto]:
    """Return the types of inputs, outputs and what lies between, where they are declared or can be inferred."""
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
        graph = onnx.shape_inference.infer_shapes(hollow, data_prop=True).graph
    except Exception as error:
        if not is_raised_by(error, "onnx"):
            raise
    values = (*graph.input, *graph.output, *graph.value_info)
    return {value.name: value.type for value in values if _has_rank(value.type)}


def _has_rank(declared: onnx.TypeProto) -> bool:
    return bool(declared.HasField("tensor_type") and declared.tensor_type.HasField("shape"))
