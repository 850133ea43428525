"""Whether another version of an operator takes the element types a node has; most newer versions take all that older ones took."""

import onnx
import onnx_ir as ir

from rewrites.migration.unconvertible import Unconvertible

__all__ = ["check_types"]


def check_types(node: ir.Node, schema: onnx.defs.OpSchema) -> None:
    """Raise Unconvertible where ``schema`` does not take the type of an input or output of ``node``; unknown types pass."""
    allowed = {constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints}
    version, bound = schema.since_version, dict[str, str]()
    for values, formals in ((node.inputs, schema.inputs), (node.outputs, schema.outputs)):
        for i, value in enumerate(values):
            if value is None or value.type is None or not formals:
                continue
            formal = formals[min(i, len(formals) - 1)]
            mine, variable = _type_text(value.type), formal.type_str
            if mine not in allowed.get(variable, [variable]):
                raise Unconvertible(f"version {version} of it does not take '{formal.name}' of type {mine}")
            if formal.is_homogeneous and bound.setdefault(variable, mine) != mine:
                raise Unconvertible(f"version {version} of it takes one type for '{variable}', not {bound[variable]} and {mine}")


def _type_text(kind: ir.TypeProtocol) -> str:
    proto = onnx.TypeProto()
    ir.serde.serialize_type_into(proto, kind)
    return _text_of(proto)


def _text_of(proto: onnx.TypeProto) -> str:
    which = proto.WhichOneof("value")
    if which == "sequence_type":
        return f"seq({_text_of(proto.sequence_type.elem_type)})"
    if which == "optional_type":
        return f"optional({_text_of(proto.optional_type.elem_type)})"
    if which == "sparse_tensor_type":
        return f"sparse_tensor({_element(proto.sparse_tensor_type.elem_type)})"
    return f"tensor({_element(proto.tensor_type.elem_type)})"


def _element(number: int) -> str:
    return str(onnx.TensorProto.DataType.Name(number)).lower()
