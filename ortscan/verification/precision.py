"""How coarsely a model computes inside, whatever the types of its outputs."""

from collections.abc import Iterator

import onnx

from ortscan.verification.subgraphs import all_graphs, all_nodes

__all__ = ["coarsest_float"]

_COARSEST_FIRST = (
    onnx.TensorProto.FLOAT8E5M2,
    onnx.TensorProto.FLOAT8E5M2FNUZ,
    onnx.TensorProto.FLOAT8E4M3FN,
    onnx.TensorProto.FLOAT8E4M3FNUZ,
    onnx.TensorProto.BFLOAT16,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.DOUBLE,
)


def coarsest_float(proto: onnx.ModelProto) -> int | None:
    """The element type of the coarsest floats in the model, or None where there are none.

    A model whose inputs and outputs are float32 may compute in float16 between a Cast to it and a Cast back.
    """
    types = set(_types(proto))
    return next((elem_type for elem_type in _COARSEST_FIRST if elem_type in types), None)


def _types(proto: onnx.ModelProto) -> Iterator[int]:
    for graph in all_graphs(proto):
        for value in (*graph.input, *graph.output, *graph.value_info):
            yield value.type.tensor_type.elem_type
        yield from (tensor.data_type for tensor in graph.initializer)
    for node, _ in all_nodes(proto):
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to":
                yield attribute.i
            if attribute.HasField("t"):
                yield attribute.t.data_type
