"""The types of all values of a main graph, as onnx infers them without being shown large weights."""

from collections.abc import Mapping, Sequence

import onnx

from ortscan.base.proto_graphs import hollow_of, without_negative_sizes
from ortscan.running.joined_vectors import has_long_vectors
from ortscan.running.specs import Spec
from rewrites.base.errors import is_raised_by

__all__ = ["element_types", "value_types"]


def value_types(
    proto: onnx.ModelProto, specs: Sequence[Spec] = (), sizes: Mapping[str, int] | None = None
) -> dict[str, onnx.TypeProto]:
    """Return the types of tensors of known rank: inputs, outputs and what lies between, where the inputs have ``sizes``."""
    return {name: declared for name, declared in _types(proto, specs, sizes or {}).items() if _has_rank(declared)}


def element_types(proto: onnx.ModelProto) -> dict[str, int]:
    """Return the element types of tensors: inputs, outputs, initializers and what lies between."""
    found = {name: declared.tensor_type.elem_type for name, declared in _types(proto).items() if declared.HasField("tensor_type")}
    return {**found, **{tensor.name: tensor.data_type for tensor in proto.graph.initializer}}


def _types(proto: onnx.ModelProto, specs: Sequence[Spec] = (), sizes: Mapping[str, int] | None = None) -> dict[str, onnx.TypeProto]:
    hollow = without_negative_sizes(hollow_of(proto))
    hollow.ir_version = max(proto.ir_version, 4)  # older ones know no initializer that is no input
    graph = hollow.graph
    if sizes:
        _bind(graph, specs, sizes)
    try:
        hollow = onnx.shape_inference.infer_shapes(hollow, data_prop=not has_long_vectors(hollow))
        graph = hollow.graph
    except Exception as error:
        if not is_raised_by(error, "onnx") and not isinstance(error, MemoryError):
            raise
    values = (*graph.input, *graph.output, *graph.value_info)
    return {value.name: value.type for value in values}


def _bind(graph: onnx.GraphProto, specs: Sequence[Spec], sizes: Mapping[str, int]) -> None:
    """Give the inputs their sizes; what else is declared in terms of these is inferred, for it may be declared wrongly."""
    ranked = {spec.name: spec.dims for spec in specs if spec.kind == "tensor" and spec.dims is not None}
    for value in graph.input:
        dims = value.type.tensor_type.shape.dim
        for axis, name in enumerate(ranked.get(value.name, ())):
            dim = dims[axis] if axis < len(dims) else dims.add()
            if isinstance(name, str) and name in sizes:
                dim.dim_value = sizes[name]
    for value in (*graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.ClearField("dim_param")


def _has_rank(declared: onnx.TypeProto) -> bool:
    return bool(declared.HasField("tensor_type") and declared.tensor_type.HasField("shape"))
