"""Static facts about a value: its constant, its rank, its dimensions, its size in bytes."""

import math
from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

__all__ = [
    "bytes_per_element",
    "const_array",
    "const_scalar",
    "dim_of",
    "is_constant",
    "is_overridable",
    "is_read",
    "producer_of",
    "rank_of",
    "same_type",
    "shape_dims",
    "size_estimate",
    "static_dims",
    "through_identity",
]

_READABLE_BYTES = 1 << 16


def is_overridable(value: ir.Value) -> bool:
    """Return True if ``value`` is an initializer and also a graph input, so that a caller can replace it."""
    return value.is_initializer() and value.is_graph_input()


def const_array(value: ir.Value | None, *, limit: int = _READABLE_BYTES) -> np.ndarray | None:
    """Return the array of ``value`` if it is a constant, or a copy of a constant; else None.

    A copy is the result of one or more Identity nodes. Also return None for initializers that a caller can override, and for
    tensors of more than ``limit`` bytes. The limit prevents that large weights are read by accident.
    """
    value = through_identity(value)
    if value is None or is_overridable(value):
        return None
    tensor = value.const_value or _tensor_of_constant(value) or ir.convenience.get_const_tensor(value)
    if tensor is None or tensor.nbytes > limit:
        return None
    return np.asarray(tensor.numpy())


def _tensor_of_constant(value: ir.Value) -> ir.TensorProtocol | None:
    """Return the tensor of the Constant node that computes ``value``; None if there is no such node."""
    node = value.producer()
    attribute = node.attributes.get("value") if node is not None and node.op_type == "Constant" and node.domain == "" else None
    return (
        attribute.value if attribute is not None and attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref() else None
    )


def is_constant(value: ir.Value) -> bool:
    """Return True if ``value`` is an initializer or the result of a Constant node.

    Return False for an initializer that a caller can override.
    """
    return not is_overridable(value) and (value.const_value is not None or _tensor_of_constant(value) is not None)


def const_scalar(value: ir.Value | None) -> int | float | bool | None:
    """Return the element of a numeric constant with one element; None for any other value."""
    array = const_array(value)
    if array is None or array.size != 1 or array.dtype.kind not in "biuf":
        return None
    item: int | float | bool = array.reshape(-1)[0].item()
    return item


def through_identity(value: ir.Value | None) -> ir.Value | None:
    """Return the value of which ``value`` is a copy, by one or more Identity nodes.

    Return ``value`` itself if no Identity computes it.
    """
    while value is not None:
        node = value.producer()
        if node is None or node.op_type != "Identity" or node.domain not in ("", "ai.onnx") or not node.inputs:
            return value
        value = node.inputs[0]
    return None


def producer_of(value: ir.Value | None, *op_types: str) -> ir.Node | None:
    """Return the node that computes ``value`` if its operator is in ``op_types``, else None.

    If ``op_types`` is empty, any standard operator is allowed. Return None for operators of other domains.
    """
    node = None if value is None else value.producer()
    return node if node is not None and node.domain == "" and (not op_types or node.op_type in op_types) else None


def is_read(value: ir.Value | None) -> bool:
    """Return True if a node reads ``value``, or if it is an output of its graph."""
    return value is not None and bool(value.uses() or value.is_graph_output())


def rank_of(value: ir.Value) -> int | None:
    """Return the rank of a tensor value, or None if it is unknown."""
    return None if value.shape is None else len(value.shape)


def static_dims(value: ir.Value) -> tuple[int, ...] | None:
    """Return the dimensions of ``value`` if all are known numbers, else None."""
    if value.shape is None:
        return None
    dims = tuple(d for d in value.shape.dims if isinstance(d, int))
    return dims if len(dims) == len(value.shape) else None


def shape_dims(shape: ir.Shape) -> list[int | str | None]:
    """Return the dimensions of a shape. Each is a number, the name of a symbol, or None if unknown."""
    return [dim if isinstance(dim, int) else dim.value for dim in shape.dims]


def dim_of(value: ir.Value, axis: int) -> int | str | None:
    """Return the size of ``value`` along ``axis``: a number, the name of a symbol, or None if unknown."""
    if value.shape is None or not -len(value.shape) <= axis < len(value.shape):
        return None
    dim = value.shape[axis]
    return dim if isinstance(dim, int) else dim.value


def bytes_per_element(value: ir.Value) -> int:
    """Return the size of one element in bytes (16 for strings; 4 if the type is unknown)."""
    if value.dtype is None:
        return 4
    if value.dtype == ir.DataType.STRING:
        return 16
    return max(1, math.ceil(value.dtype.itemsize))


def size_estimate(value: ir.Value, sizes: Mapping[str, int], assume: int) -> int:
    """Return an estimate of the bytes of ``value``.

    ``sizes`` maps names of dimensions to sizes. Each other dimension without a number counts as ``assume``.
    """
    if value.shape is None:
        return assume * bytes_per_element(value)
    count = 1
    for dim in value.shape.dims:
        count *= dim if isinstance(dim, int) else sizes.get(dim.value or "", assume)
    return count * bytes_per_element(value)


def same_type(left: ir.Value, right: ir.Value) -> bool:
    """Return True unless the two values are tensors with different element types.

    Exporters declare some sequences as tensors. So if only one value is declared as a tensor, the types cannot be compared, and
    this function returns True.
    """
    tensors = isinstance(left.type, ir.TensorType) and isinstance(right.type, ir.TensorType)
    return not tensors or left.dtype == right.dtype
