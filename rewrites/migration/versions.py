"""Reads the history of each standard operator from onnx, and checks the element types of a node."""

import functools

import onnx
import onnx_ir as ir

from rewrites.migration.step import Unconvertible

__all__ = ["NEWEST", "check_types", "differ_only_in_types", "schema_of", "since", "versions_of"]

NEWEST = 28
"""The newest supported opset. Before it is raised, each operator must be compared by hand: schemas do not show all changes."""


def schema_of(op_type: str, opset: int) -> onnx.defs.OpSchema | None:
    """Return the schema of the operator ``op_type`` in ``opset``; None if the opset has no such operator."""
    return _history().get(op_type, {}).get(since(op_type, opset))


@functools.cache
def since(op_type: str, opset: int) -> int:
    """Return the version of the operator ``op_type`` in ``opset``; 0 if the opset has no such operator."""
    return max((version for version in versions_of(op_type) if version <= opset), default=0)


@functools.cache
def differ_only_in_types(op_type: str, opset: int, other: int) -> bool:
    """Return True if the schemas of an operator in two opsets differ at most in the allowed types.

    If the operator exists in only one of the opsets, return False. If it exists in neither, return True.
    """
    first, second = schema_of(op_type, opset), schema_of(op_type, other)
    return first is second or (
        first is not None and second is not None and _schema_without_types(first) == _schema_without_types(second)
    )


def _schema_without_types(schema: onnx.defs.OpSchema) -> tuple[object, ...]:
    inputs, outputs = (
        [(formal.name, formal.option, formal.min_arity) for formal in formals] for formals in (schema.inputs, schema.outputs)
    )
    attributes = {(name, item.type, item.required, str(item.default_value)) for name, item in schema.attributes.items()}
    return inputs, outputs, attributes, schema.deprecated


def versions_of(op_type: str) -> tuple[int, ...]:
    """Return all versions of the operator ``op_type``, oldest first; an empty tuple if it is unknown."""
    return tuple(sorted(_history().get(op_type, {})))


@functools.cache
def _history() -> dict[str, dict[int, onnx.defs.OpSchema]]:
    history: dict[str, dict[int, onnx.defs.OpSchema]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            history.setdefault(schema.name, {})[schema.since_version] = schema
    return history


def check_types(node: ir.Node, schema: onnx.defs.OpSchema) -> None:
    """Raise Unconvertible if ``schema`` does not allow the type of an input or output of ``node``.

    Unknown types count as allowed.
    """
    allowed = {constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints}
    version, bound = schema.since_version, dict[str, str]()
    for values, formals in ((node.inputs, schema.inputs), (node.outputs, schema.outputs)):
        for i, value in enumerate(values):
            if value is None or value.type is None or not formals:
                continue
            formal = formals[min(i, len(formals) - 1)]
            mine, variable = _type_text(value.type), formal.type_str
            if mine not in allowed.get(variable, [variable]):
                raise Unconvertible(f"version {version} of it does not support '{formal.name}' of type {mine}")
            if formal.is_homogeneous and bound.setdefault(variable, mine) != mine:
                raise Unconvertible(f"version {version} of it needs one type for '{variable}', not {bound[variable]} and {mine}")


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
