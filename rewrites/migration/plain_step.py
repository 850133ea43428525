"""The step of a node whose operator has no conversion: the next version means the same, but for what its schema says openly.

    Abs <consumed_inputs> (x)                    ->  Abs (x)
    Op (x), default of ``a`` was 1 and becomes 2 ->  Op <a = 1> (x)
    lowering: Op <a = default> (x), no ``a``     ->  Op (x)

All operators up to ``versions.NEWEST`` whose meaning changes in any other way have a conversion; a new attribute's default and an
absent new input stand for what the operator did before.
"""

from typing import Any

import onnx
import onnx_ir as ir

from rewrites.migration.step import Step, Unconvertible, Written

__all__ = ["plain_step"]

_LEGACY = frozenset({"consumed_inputs"})


def plain_step(step: Step, old: onnx.defs.OpSchema | None, new: onnx.defs.OpSchema | None) -> Written:
    """Write the node of schema ``old`` for schema ``new``, or return None where nothing needs to change."""
    assert old is not None
    assert new is not None
    if new.deprecated:
        raise Unconvertible(f"opset {new.since_version} does not have it any more")
    changed: dict[str, Any] = {}
    for name in step.node.attributes:
        if name in new.attributes:
            continue
        if name not in _LEGACY and not (name in old.attributes and _says_default(step, name, old)):
            raise Unconvertible(f"version {new.since_version} of it has no attribute '{name}'")
        changed[name] = None
    for name, attribute in new.attributes.items():
        if name in step.node.attributes:
            continue
        if attribute.required:
            raise Unconvertible(f"version {new.since_version} of it requires the attribute '{name}'")
        before = _default(old, name)
        if before is not None and before != _default(new, name):
            changed[name] = before
    _check_counts(step.node, new)
    return step.like(**changed) if changed else None


def _says_default(step: Step, name: str, schema: onnx.defs.OpSchema) -> bool:
    attribute = step.node.attributes[name]
    if attribute.is_ref():
        return False
    default = _default(schema, name)
    return default is not None and attribute.value == default


def _default(schema: onnx.defs.OpSchema, name: str) -> object:
    if name not in schema.attributes or not schema.attributes[name].default_value.type:
        return None
    default: object = onnx.helper.get_attribute_value(schema.attributes[name].default_value)
    return default.decode() if isinstance(default, bytes) else default


def _check_counts(node: ir.Node, schema: onnx.defs.OpSchema) -> None:
    version = schema.since_version
    given = len(node.inputs)
    while given and node.inputs[given - 1] is None:
        given -= 1
    if given > schema.max_input:
        raise Unconvertible(f"version {version} of it takes {schema.max_input} inputs, and it has {given}")
    for i, formal in enumerate(schema.inputs):
        single = formal.option == onnx.defs.OpSchema.FormalParameterOption.Single
        if single and (i >= given or node.inputs[i] is None):
            raise Unconvertible(f"version {version} of it requires the input '{formal.name}'")
    if given < schema.min_input:
        raise Unconvertible(f"version {version} of it requires {schema.min_input} inputs, and it has {given}")
    results = len(node.outputs)
    while results and not node.outputs[results - 1].name:
        results -= 1
    if results > schema.max_output:
        raise Unconvertible(f"version {version} of it has {schema.max_output} outputs, and {results} are used")
