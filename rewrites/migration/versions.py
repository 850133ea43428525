"""The history of each standard operator, as onnx records it."""

import functools

import onnx

__all__ = ["NEWEST", "schema_of", "since", "versions_of"]

NEWEST = 26
"""The newest opset whose operators have been compared with those before: a change of meaning may hide behind an equal schema."""


def schema_of(op_type: str, opset: int) -> onnx.defs.OpSchema | None:
    """Give the schema that a model of ``opset`` means, or None where it has no such operator."""
    return _history().get(op_type, {}).get(since(op_type, opset))


@functools.cache
def since(op_type: str, opset: int) -> int:
    """Give the version of the operator that a model of ``opset`` means, or 0 where it has no such operator."""
    return max((version for version in versions_of(op_type) if version <= opset), default=0)


def versions_of(op_type: str) -> tuple[int, ...]:
    """Give all versions of an operator, oldest first; none for what onnx never knew."""
    return tuple(sorted(_history().get(op_type, {})))


@functools.cache
def _history() -> dict[str, dict[int, onnx.defs.OpSchema]]:
    history: dict[str, dict[int, onnx.defs.OpSchema]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            history.setdefault(schema.name, {})[schema.since_version] = schema
    return history
