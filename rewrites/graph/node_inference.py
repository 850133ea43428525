"""Types and shapes of what single nodes give, by their operators' schemas: nodes that rules build are inferred as they are made.

Works round ONNX-AXES-WITHOUT-SHAPE.
"""

from collections.abc import Set
from functools import cache, partial

import onnx
import onnx_ir as ir

from rewrites.graph.contrib_inference import infer_contrib, is_told_here
from rewrites.graph.dims import refined, without_names
from rewrites.graph.learned_shapes import told_anew
from rewrites.graph.values import const_array
from rewrites.graph.walk import node_graphs

__all__ = ["contradicts", "infer_node", "learn_shapes"]

_DATA_BYTES = 4096

_TAKEN_FOR_ABSENT = {"Pad": (3,), "Slice": (3, 4)}
"""The operands that onnx takes for absent where their shapes are not known, by operator."""


def infer_node(node: ir.Node, opsets: dict[str, int], ir_version: int) -> None:
    """Set type and shape of ``node``'s outputs where the operator's schema tells them.

    Outputs keep what they have where onnx knows no such operator, an input has no type, or nothing can be inferred.
    """
    if is_told_here(node):
        infer_contrib(node)
        return
    try:
        found = _found(node, opsets, ir_version)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError):
        return
    for value in node.outputs:
        proto = found.get(value.name or "")
        if proto is not None and value.type is None:
            value.type = ir.serde.deserialize_type_proto_for_type(proto)
        if proto is not None and value.shape is None:
            value.shape = ir.serde.deserialize_type_proto_for_shape(proto)


def contradicts(node: ir.Node, opsets: dict[str, int], ir_version: int) -> bool:
    """Whether ``node``, which holds no graphs, takes no operands of the sizes it is given."""
    if node_graphs(node):
        return False
    try:
        _found(node, opsets, ir_version)
    except onnx.shape_inference.InferenceError as error:
        return "ShapeInferenceError" in str(error)
    except onnx.checker.ValidationError:
        return False
    return False


def _found(node: ir.Node, opsets: dict[str, int], ir_version: int) -> dict[str, onnx.TypeProto]:
    schema = _schema(node.op_type, node.domain, opsets.get(node.domain, 1))
    if schema is None or any(_is_unshaped(node, place) for place in _TAKEN_FOR_ABSENT.get(node.op_type, ())):
        return {}
    types, data = {}, {}
    for value in node.inputs:
        if value is None or value.name is None:
            continue
        if value.type is None:
            return {}
        types[value.name] = _type_proto(value)
        array = const_array(value, limit=_DATA_BYTES)
        if array is not None and array.dtype.kind in "iu":
            data[value.name] = onnx.numpy_helper.from_array(array, value.name)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return onnx.shape_inference.infer_node_outputs(
        schema, ir.serde.serialize_node(node), types, data, opset_imports=imports, ir_version=ir_version
    )


def _is_unshaped(node: ir.Node, place: int) -> bool:
    value = node.inputs[place] if place < len(node.inputs) else None
    return value is not None and value.shape is None


def learn_shapes(body: ir.Graph, changed: Set[ir.Node], opsets: dict[str, int], ir_version: int) -> None:
    """Infer again what the nodes of ``body`` in ``changed``, and what depends on them, left open; sizes that are numbers count."""
    waiting = set(changed)
    for node in body if waiting else ():
        if node not in waiting or not any(_is_open(value) for value in node.outputs):
            continue
        for value, found in told_anew(node, partial(infer_node, opsets=opsets, ir_version=ir_version)).items():
            shape = refined(without_names(value.shape), without_names(found), value.shape)
            if value.shape != shape:
                value.shape = shape
                waiting.update(user for user, _ in value.uses())


def _is_open(value: ir.Value) -> bool:
    return value.shape is None or any(not isinstance(dim, int) for dim in value.shape.dims)


@cache
def _schema(op_type: str, domain: str, version: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


def _type_proto(value: ir.Value) -> onnx.TypeProto:
    proto = onnx.TypeProto()
    assert value.type is not None
    ir.serde.serialize_type_into(proto, value.type)
    if value.shape is not None:
        ir.serde.serialize_shape_into(proto, value.shape)
    return proto
