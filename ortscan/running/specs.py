"""The declarations of a model's inputs and outputs."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import onnx

__all__ = ["Dim", "SessionSpec", "input_specs", "output_specs", "overridable_names"]

Dim = int | str
"""A fixed size, or the name of a free dimension: its symbol, or a name such as ``x[0]`` if it has no symbol."""


@dataclass(frozen=True)
class SessionSpec:
    """The declaration of an input or output.

    Args:
        name: the name of the input or output.
        kind: ``tensor``, ``sequence`` (of tensors), or ``other`` for a type whose values cannot be generated, such as a map.
        elem_type: the element type, as a number of ``onnx.TensorProto``.
        dims: the size of each dimension, or None if the rank is not declared.
        optional: True for an optional type.
        declared: the type without shapes, such as ``tensor(float)``.
    """

    name: str
    kind: Literal["tensor", "sequence", "other"]
    elem_type: int
    dims: tuple[Dim, ...] | None
    optional: bool = False
    declared: str = ""


def input_specs(graph: onnx.GraphProto) -> list[SessionSpec]:
    """Return the declarations of the inputs that a caller must feed, in the order of the graph.

    An input with an initializer has a default, so it is not included.
    """
    initialized = {tensor.name for tensor in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    return [spec for spec in _specs(graph.input) if spec.name not in initialized]


def output_specs(graph: onnx.GraphProto) -> list[SessionSpec]:
    """Return the declarations of the outputs, in the order of the graph."""
    return _specs(graph.output)


def overridable_names(model: onnx.ModelProto) -> set[str]:
    """Return the names of the inputs with a default, which a caller may override by feeding a value.

    Before IR version 4, every initializer had to be listed as an input, so the result is empty for such models.
    """
    if model.ir_version < 4:
        return set()
    return {tensor.name for tensor in model.graph.initializer} & {value.name for value in model.graph.input}


def _specs(values: Iterable[onnx.ValueInfoProto]) -> list[SessionSpec]:
    return [replace(_spec(value.name, value.type), declared=_type_text(value.type)) for value in values]


def _spec(name: str, declared: onnx.TypeProto) -> SessionSpec:
    match declared.WhichOneof("value"):
        case "tensor_type":
            return SessionSpec(name, "tensor", declared.tensor_type.elem_type, _dims(name, declared.tensor_type))
        case "sequence_type":
            inner = _spec(name, declared.sequence_type.elem_type)
            kind: Literal["sequence", "other"] = "sequence" if inner.kind == "tensor" and not inner.optional else "other"
            return replace(inner, kind=kind)
        case "optional_type":
            return replace(_spec(name, declared.optional_type.elem_type), optional=True)
    return SessionSpec(name, "other", 0, None)


def _dims(name: str, tensor: onnx.TypeProto.Tensor) -> tuple[Dim, ...] | None:
    if not tensor.HasField("shape"):
        return None
    return tuple(_dim(f"{name}[{axis}]", dim) for axis, dim in enumerate(tensor.shape.dim))


def _dim(anonymous: str, dim: onnx.TensorShapeProto.Dimension) -> Dim:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return dim.dim_value
    return dim.dim_param or anonymous


def _type_text(declared: onnx.TypeProto) -> str:
    """Return a declared type as a text without shapes, such as ``seq(tensor(float))``."""
    match declared.WhichOneof("value"):
        case "tensor_type":
            return f"tensor({onnx.TensorProto.DataType.Name(declared.tensor_type.elem_type).lower()})"
        case "sequence_type":
            return f"seq({_type_text(declared.sequence_type.elem_type)})"
        case "optional_type":
            return f"optional({_type_text(declared.optional_type.elem_type)})"
        case "map_type":
            key = onnx.TensorProto.DataType.Name(declared.map_type.key_type).lower()
            return f"map({key},{_type_text(declared.map_type.value_type)})"
    return declared.WhichOneof("value") or "unknown type"
