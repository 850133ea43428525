"""The history of each standard operator, as onnx records it."""

import functools

import onnx

__all__ = ["NEWEST", "schema_of", "since", "spelt_alike", "versions_of"]

NEWEST = 28
"""The newest opset whose operators have been compared with those before: a change of meaning may hide behind an equal schema."""


def schema_of(op_type: str, opset: int) -> onnx.defs.OpSchema | None:
    """Return the schema that a model of ``opset`` means, or None where it has no such operator."""
    return _history().get(op_type, {}).get(since(op_type, opset))


@functools.cache
def since(op_type: str, opset: int) -> int:
    """Return the version of the operator that a model of ``opset`` means, or 0 where it has no such operator."""
    return max((version for version in versions_of(op_type) if version <= opset), default=0)


@functools.cache
def spelt_alike(op_type: str, opset: int, other: int) -> bool:
    """Whether the operator exists in both opsets and its two schemas differ in types at most."""
    one, two = schema_of(op_type, opset), schema_of(op_type, other)
    return one is two or (one is not None and two is not None and _spelling(one) == _spelling(two))


def _spelling(schema: onnx.defs.OpSchema) -> tuple[object, ...]:
    inputs, outputs = ([(one.name, one.option, one.min_arity) for one in formals] for formals in (schema.inputs, schema.outputs))
    attributes = {(name, one.type, one.required, str(one.default_value)) for name, one in schema.attributes.items()}
    return inputs, outputs, attributes, schema.deprecated


def versions_of(op_type: str) -> tuple[int, ...]:
    """Return all versions of an operator, oldest first; none for what onnx never knew."""
    return tuple(sorted(_history().get(op_type, {})))


@functools.cache
def _history() -> dict[str, dict[int, onnx.defs.OpSchema]]:
    history: dict[str, dict[int, onnx.defs.OpSchema]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            history.setdefault(schema.name, {})[schema.since_version] = schema
    return history
