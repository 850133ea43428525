"""Sizes below zero, which some exporters write for free ones, as onnxruntime reads them; onnx's inference takes them for numbers.

Works round ONNX-NEGATIVE-SIZE.
"""

import itertools

import onnx

from ortscan.base.proto_graphs import all_graphs

__all__ = ["has_negative_sizes", "without_negative_sizes", "write_negative_sizes_as_free"]


def without_negative_sizes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy that declares such sizes as free, or ``proto`` itself where it has none."""
    if not any(has_negative_sizes(info.type) for info in _infos(proto)):
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for info in _infos(copy):
        write_negative_sizes_as_free(info.type)
    return copy


def has_negative_sizes(declared: onnx.TypeProto) -> bool:
    """Whether a type declares a size below zero."""
    return any(dim.dim_value < 0 for dim in _dims(declared))


def write_negative_sizes_as_free(declared: onnx.TypeProto) -> None:
    """Leave sizes below zero out of a type."""
    for dim in _dims(declared):
        if dim.dim_value < 0:
            dim.ClearField("dim_value")


def _infos(proto: onnx.ModelProto) -> "itertools.chain[onnx.ValueInfoProto]":
    return itertools.chain.from_iterable((*graph.input, *graph.output, *graph.value_info) for graph in all_graphs(proto))


def _dims(declared: onnx.TypeProto) -> list[onnx.TensorShapeProto.Dimension]:
    match declared.WhichOneof("value"):
        case "tensor_type":
            return list(declared.tensor_type.shape.dim)
        case "sequence_type":
            return _dims(declared.sequence_type.elem_type)
        case "optional_type":
            return _dims(declared.optional_type.elem_type)
    return []
