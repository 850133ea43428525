"""A model without its large weights."""

import math

import onnx

__all__ = ["hollow_of"]

_MOST_ELEMENTS = 256


def hollow_of(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return ``proto`` with inputs in the place of large weights: its sessions have the same outputs, and read nothing for them."""
    hollow = onnx.ModelProto(ir_version=proto.ir_version, opset_import=proto.opset_import, functions=proto.functions)
    graph, given = hollow.graph, proto.graph
    graph.name = given.name
    for mine, theirs in ((graph.node, given.node), (graph.input, given.input), (graph.output, given.output)):
        mine.extend(theirs)
    graph.value_info.extend(given.value_info)
    graph.sparse_initializer.extend(given.sparse_initializer)
    listed = {info.name for info in given.input}
    for tensor in given.initializer:
        if math.prod(tensor.dims) <= _MOST_ELEMENTS and tensor.data_location != onnx.TensorProto.EXTERNAL:
            graph.initializer.append(tensor)
        elif tensor.name not in listed:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return hollow
