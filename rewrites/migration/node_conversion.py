"""Converts a node to another opset, up or down, through all versions of its operator in between.

A step from one version to the next may write several nodes. Each new node is then converted further. If an operator has no
conversion function for a version, the step compares the two schemas and changes the attributes:

    Abs <consumed_inputs> (x)                    ->  Abs (x)
    Op (x), default of ``a`` was 1 and becomes 2 ->  Op <a = 1> (x)
    lowering: Op <a = default> (x), no ``a``     ->  Op (x)

All operators up to ``versions.NEWEST`` that change in any other way have a conversion function. If a new version adds an attribute
or an optional input, its default keeps the old meaning.
"""

from collections.abc import Sequence
from typing import Any

import onnx
import onnx_ir as ir

from rewrites.graph.builder import Builder, ConstantPool
from rewrites.graph.marks import carry
from rewrites.graph.names import Names
from rewrites.graph.replace import take_over
from rewrites.migration.conversions import LIFTING, LOWERING
from rewrites.migration.step import Step, Unconvertible, Written
from rewrites.migration.versions import check_types, differ_only_in_types, schema_of, since, versions_of

__all__ = ["NodeConversion"]

_IN_ORT_BEFORE = frozenset({"LayerNormalization", "ThresholdedRelu"})
"""Operators that onnxruntime also runs, with the same meaning, in opsets before onnx defined them."""
_LEGACY = frozenset({"consumed_inputs"})


class NodeConversion:
    """Converts the nodes of one graph or function from opset ``source`` to opset ``target``."""

    def __init__(self, source: int, target: int, names: Names, constants: ConstantPool, ir_version: int) -> None:
        self._source = source
        self._target = target
        self._names = names
        self._constants = constants
        self._ir_version = ir_version

    def convert(self, node: ir.Node) -> tuple[str, ...]:
        """Convert ``node`` in its graph to the target opset.

        Returns:
            The operator types of the nodes that replace ``node``, or an empty tuple if ``node`` itself remains.

        Raises:
            Unconvertible: A version of the operator cannot express what ``node`` computes.
        """
        pending, final = [(node, self._source)], [node]
        while pending:
            current, version = pending.pop()
            outcome = self._convert_to_next_version(current, version)
            if outcome is None:
                continue
            next_version, step, results = outcome
            if step is None or results is None:
                pending.append((current, next_version))
                continue
            new = _replace_node(current, results, step.builder, self._names)
            final[final.index(current) : final.index(current) + 1] = new
            pending += [(written, step.written.get(written, next_version)) for written in new]
        if self._target < self._source:
            for written in final:
                if (schema := schema_of(written.op_type, self._target)) is not None:
                    check_types(written, schema)
        return () if final == [node] else tuple(written.op_type for written in final)

    def _convert_to_next_version(self, node: ir.Node, version: int) -> tuple[int, Step | None, Written] | None:
        """Convert ``node`` from opset ``version`` to the next version of its operator.

        Return None if ``version`` is the operator's last version on the way to the target. Otherwise return a triple:

        * the opset of the next version
        * the ``Step`` that holds the new nodes; None if the schemas of both versions differ at most in types
        * the values that replace the outputs of ``node``; None if the node does not change
        """
        op_type = node.op_type
        next_version = _next_version(op_type, version, self._target)
        if next_version is None:
            return None
        conversion = (
            LIFTING.get((op_type, next_version)) if next_version > version else LOWERING.get((op_type, since(op_type, version)))
        )
        if conversion is None and differ_only_in_types(op_type, version, next_version):
            return next_version, None, None
        step = Step(
            node, self._constants, Builder(self._names, self._constants, {"": next_version}, self._ir_version), self._target
        )
        try:
            results = None if conversion is None else conversion(step)
            if results is None:
                results = _convert_by_schemas(step, schema_of(op_type, version), schema_of(op_type, next_version))
        except Unconvertible:
            step.builder.discard()
            raise
        return next_version, step, results


def _replace_node(node: ir.Node, results: Sequence[ir.Value], builder: Builder, names: Names) -> list[ir.Node]:
    """Replace ``node`` by the nodes of ``builder``, and return the new nodes.

    ``results``: the values that replace the outputs of ``node``. They get the names of these outputs. One new node gets the name of
    ``node``: the last new node with the operator of ``node``, or the last new node if none has this operator.
    """
    new = list(builder.nodes)
    builder.insert_before(node)
    for old, result in zip(node.outputs, results, strict=False):
        result.doc_string = old.doc_string
        result.metadata_props.update(old.metadata_props)
        carry(old, result)
        take_over(old, result, names)
    successor = next((written for written in reversed(new) if written.op_type == node.op_type), new[-1])
    assert node.graph is not None
    node.graph.remove(node, safe=True)
    successor.name = node.name
    successor.doc_string = node.doc_string
    for written in new:
        written.metadata_props.update(node.metadata_props)
    return new


def _next_version(op_type: str, version: int, target: int) -> int | None:
    """Return the opset of the operator's next version on the way from opset ``version`` to ``target``.

    Return None if there is no other version on this way. Raise Unconvertible if the operator has no known meaning in an opset on
    this way.
    """
    known = versions_of(op_type)
    if not known or version == target:
        return None
    if target < version:
        here = since(op_type, version)
        if here <= target:
            return None
        if here == known[0] and (op_type, here) not in LOWERING:
            raise Unconvertible(f"it exists only since opset {here}")
        return here - 1
    if version < known[0]:
        if (op_type, known[0]) in LIFTING:
            return known[0] if known[0] <= target else None
        if op_type in _IN_ORT_BEFORE:
            return None
        raise Unconvertible(f"onnx defines it from opset {known[0]} on, and its earlier meaning is unknown")
    return min((later for later in known if version < later <= target), default=None)


def _convert_by_schemas(step: Step, old: onnx.defs.OpSchema | None, new: onnx.defs.OpSchema | None) -> Written:
    """Convert the node of ``step`` by comparing the schemas ``old`` and ``new`` of its operator.

    Use this if there is no conversion function. Return the results of the new node, or None if the node does not change.
    """
    assert old is not None
    assert new is not None
    if new.deprecated:
        raise Unconvertible(f"opset {new.since_version} no longer has it")
    changed: dict[str, Any] = {}
    for name in step.node.attributes:
        if name in new.attributes:
            continue
        if name not in _LEGACY and not (name in old.attributes and _has_default_value(step, name, old)):
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
    return step.rewrite_with(**changed) if changed else None


def _has_default_value(step: Step, name: str, schema: onnx.defs.OpSchema) -> bool:
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
    inputs = len(node.inputs)
    while inputs and node.inputs[inputs - 1] is None:
        inputs -= 1
    if inputs > schema.max_input:
        raise Unconvertible(f"version {version} of it has at most {schema.max_input} inputs, and it has {inputs}")
    for i, formal in enumerate(schema.inputs):
        single = formal.option == onnx.defs.OpSchema.FormalParameterOption.Single
        if single and (i >= inputs or node.inputs[i] is None):
            raise Unconvertible(f"version {version} of it requires the input '{formal.name}'")
    if inputs < schema.min_input:
        raise Unconvertible(f"version {version} of it requires {schema.min_input} inputs, and it has {inputs}")
    results = len(node.outputs)
    while results and not node.outputs[results - 1].name:
        results -= 1
    if results > schema.max_output:
        raise Unconvertible(f"version {version} of it has {schema.max_output} outputs, and {results} are used")
