"""Types and shapes of values, by onnx's own inference.

The whole model is inferred once, before any rule looks at it; nodes built by rules are inferred one by one as they are made.
"""

import functools

import onnx
import onnx_ir as ir

from rewrites.values import const_array

__all__ = ["infer_model", "infer_node"]

_DATA_BYTES = 4096


def infer_model(model: ir.Model) -> None:
    """Infer types and shapes all over ``model``, bodies included, keeping what was declared.

    onnx's engine is used because it alone is right on Scan-8 and Scan-9+ bodies, untyped bodies and captures.
    """
    from onnx_ir.passes.common import ShapeInferencePass

    ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(model)


def infer_node(node: ir.Node, opsets: dict[str, int], ir_version: int) -> None:
    """Set type and shape of ``node``'s outputs where the operator's schema tells them.

    Outputs keep what they have where onnx knows no such operator or cannot infer.
    """
    schema = _schema(node.op_type, node.domain, opsets.get(node.domain, 1))
    if schema is None:
        return
    types, data = {}, {}
    for value in node.inputs:
        if value is None or value.name is None or value.type is None:
            continue
        types[value.name] = _type_proto(value)
        array = const_array(value, limit=_DATA_BYTES)
        if array is not None and array.dtype.kind in "iu":
            data[value.name] = onnx.numpy_helper.from_array(array, value.name)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    try:
        found = onnx.shape_inference.infer_node_outputs(
            schema, ir.serde.serialize_node(node), types, data, opset_imports=imports, ir_version=ir_version
        )
    except onnx.shape_inference.InferenceError:
        return
    for value in node.outputs:
        proto = found.get(value.name or "")
        if proto is not None and value.type is None:
            value.type = ir.serde.deserialize_type_proto_for_type(proto)
        if proto is not None and value.shape is None:
            value.shape = ir.serde.deserialize_type_proto_for_shape(proto)


@functools.cache
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
