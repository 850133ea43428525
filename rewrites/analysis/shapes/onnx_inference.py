"""Runs onnx's own inference on a model.

Large weights are passed to onnx as inputs, because no shape depends on their elements. Small weights are passed as constants.
Therefore time and memory grow with the number of values, but not with their sizes.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import onnx
import onnx_ir as ir

from rewrites.analysis.shapes.branches_of_ifs import declare_calls_with_branches, hide_unlike_branches
from rewrites.analysis.shapes.shown_scopes import make_names_unique, show_captured_constants
from rewrites.analysis.shapes.unknown_bounds import forget_cut_names, hide_unknown_bounds
from rewrites.base.errors import UnsupportedModel
from rewrites.graph.walk import node_graphs

__all__ = ["infer_by_onnx", "infer_proto"]

_LARGE_BYTES = 1000
_MOST_ROUNDS = 20
"""The largest number of rounds for Ifs before opset 11 that depend on each other. No model needs so many."""


def infer_by_onnx(model: ir.Model, *, data_prop: bool) -> None:
    """Set the types and shapes that onnx infers in all graphs of ``model``. If onnx fails, change nothing."""
    try:
        with _weights_as_inputs(model.graph):
            proto = ir.to_proto(model)
        show_captured_constants(proto.graph, {value.name or "" for value in model.graph.inputs})
        make_names_unique(proto)
        declare_calls_with_branches(proto, lambda inlined: infer_proto(inlined, data_prop))
        inferred = infer_proto(proto, data_prop)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ir.serde.SerdeError, ValueError, RuntimeError):
        return
    if inferred is not None:
        _copy_types(model.graph, inferred.graph, {})


def infer_proto(proto: onnx.ModelProto, data_prop: bool) -> onnx.ModelProto | None:
    """Return a copy of ``proto`` with inferred types and shapes.

    This function also changes ``proto``: it hides details that mislead onnx. If the branches of an If return different shapes, it
    hides their sizes and infers again, until nothing changes. Return None if this takes more than 20 rounds.
    """
    hide_unknown_bounds(proto)
    inferred = _inferred(proto, data_prop)
    if forget_cut_names(proto, inferred):
        inferred = _inferred(proto, data_prop)
    for _ in range(_MOST_ROUNDS):
        if not hide_unlike_branches(proto, inferred):
            return inferred
        inferred = _inferred(proto, data_prop)
    return None


def _inferred(proto: onnx.ModelProto, data_prop: bool) -> onnx.ModelProto:
    try:
        return onnx.shape_inference.infer_shapes(proto, check_type=False, strict_mode=False, data_prop=data_prop)
    except MemoryError:  # data propagation computes vectors that do not fit in memory; the next try runs without it
        pass
    try:
        return onnx.shape_inference.infer_shapes(proto, check_type=False, strict_mode=False, data_prop=False)
    except MemoryError:
        raise UnsupportedModel("onnx's inference needs more memory for this model than there is.") from None


_Known = dict[bytes, tuple[ir.Shape | None, ir.DataType | None]]
"""A cache of shapes and element types, by the serialised type. The values of a model have few different types."""


def _copy_types(graph: ir.Graph, inferred: onnx.GraphProto, cache: _Known) -> None:
    """Copy the inferred types and shapes of tensors from ``inferred`` to the values of ``graph``.

    ``cache``: the shapes and element types that were already read from the types in ``inferred``.
    """
    types = {info.name: info.type for infos in (inferred.input, inferred.output, inferred.value_info) for info in infos}
    for value, info in zip(graph.inputs, inferred.input, strict=False):
        _set_type(value, types.get(info.name), cache)
    for node, proto in zip(graph, inferred.node, strict=True):
        for value, name in zip(node.outputs, proto.output, strict=False):
            _set_type(value, types.get(name), cache)
        if node_graphs(node):
            for attribute in proto.attribute:
                inner = node.attributes[attribute.name]
                if inner.type == ir.AttributeType.GRAPH and not inner.is_ref():
                    _copy_types(inner.as_graph(), attribute.g, cache)
                elif inner.type == ir.AttributeType.GRAPHS and not inner.is_ref():
                    for nested, other in zip(inner.as_graphs(), attribute.graphs, strict=True):
                        _copy_types(nested, other, cache)


def _set_type(value: ir.Value, type_proto: onnx.TypeProto | None, cache: _Known) -> None:
    if type_proto is None:
        return
    key = type_proto.SerializeToString()
    if key not in cache:
        cache[key] = _shape_and_type(type_proto)
    shape, dtype = cache[key]
    if shape is not None and (value.shape is None or value.shape != shape):
        value.shape = shape.copy()
    if dtype is not None and value.dtype != dtype:
        value.dtype = dtype


def _shape_and_type(type_proto: onnx.TypeProto) -> tuple[ir.Shape | None, ir.DataType | None]:
    if type_proto.WhichOneof("value") not in ("tensor_type", "sparse_tensor_type"):
        return None, None
    tensor_type = ir.serde.deserialize_type_proto_for_type(type_proto)
    return ir.serde.deserialize_type_proto_for_shape(type_proto), None if tensor_type is None else tensor_type.dtype


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
