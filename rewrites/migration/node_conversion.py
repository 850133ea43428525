"""Converts one node, step by step through the versions of its operator; what a step writes is converted onward in turn."""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.graph.builder import Builder, ConstantPool
from rewrites.graph.marks import carry
from rewrites.graph.names import Names
from rewrites.graph.replace import take_over
from rewrites.migration.conversions import LIFTING, LOWERING
from rewrites.migration.plain_step import plain_step
from rewrites.migration.step import Step, Unconvertible, Written
from rewrites.migration.versions import check_types, schema_of, since, spelt_alike, versions_of

__all__ = ["NodeConversion"]

_IN_ORT_BEFORE = frozenset({"LayerNormalization", "ThresholdedRelu"})
"""Operators that onnxruntime runs in opsets older than the one they entered, and that mean the same there."""


class NodeConversion:
    """Converts nodes from opset ``source`` to opset ``target``; one for each graph, or function, with opsets of its own."""

    def __init__(self, source: int, target: int, names: Names, constants: ConstantPool, ir_version: int) -> None:
        self._source = source
        self._target = target
        self._names = names
        self._constants = constants
        self._ir_version = ir_version

    def convert(self, node: ir.Node) -> tuple[str, ...]:
        """Convert ``node`` in its graph, and return the operators written in its place; none where it stays.

        Raises Unconvertible.
        """
        pending, final = [(node, self._source)], [node]
        while pending:
            current, version = pending.pop()
            outcome = self._step(current, version)
            if outcome is None:
                continue
            at, step, results = outcome
            if step is None or results is None:
                pending.append((current, at))
                continue
            new = _splice(current, results, step.builder, self._names)
            final[final.index(current) : final.index(current) + 1] = new
            pending += [(written, step.written.get(written, at)) for written in new]
        if self._target < self._source:
            for written in final:
                if (schema := schema_of(written.op_type, self._target)) is not None:
                    check_types(written, schema)
        return () if final == [node] else tuple(written.op_type for written in final)

    def _step(self, node: ir.Node, version: int) -> tuple[int, Step | None, Written] | None:
        """Do the next step of ``node`` and return the opset it leads to, and what was written; None where it has arrived."""
        op_type = node.op_type
        at = _next_version(op_type, version, self._target)
        if at is None:
            return None
        conversion = LIFTING.get((op_type, at)) if at > version else LOWERING.get((op_type, since(op_type, version)))
        if conversion is None and spelt_alike(op_type, version, at):
            return at, None, None
        step = Step(node, self._constants, Builder(self._names, self._constants, {"": at}, self._ir_version), self._target)
        try:
            results = None if conversion is None else conversion(step)
            if results is None:
                results = plain_step(step, schema_of(op_type, version), schema_of(op_type, at))
        except Unconvertible:
            step.builder.discard()
            raise
        return at, step, results


def _next_version(op_type: str, version: int, target: int) -> int | None:
    """Return the opset of the next step from ``version`` to ``target``, or None where there is none."""
    known = versions_of(op_type)
    if not known or version == target:
        return None
    if target < version:
        here = since(op_type, version)
        if here <= target:
            return None
        if here == known[0] and (op_type, here) not in LOWERING:
            raise Unconvertible(f"it exists since opset {here} only")
        return here - 1
    if version < known[0]:
        if (op_type, known[0]) in LIFTING:
            return known[0] if known[0] <= target else None
        if op_type in _IN_ORT_BEFORE:
            return None
        raise Unconvertible(f"onnx defines it from opset {known[0]} on, and what it meant before is not known")
    return min((later for later in known if version < later <= target), default=None)


def _splice(node: ir.Node, results: Sequence[ir.Value], builder: Builder, names: Names) -> list[ir.Node]:
    """Put the nodes of ``builder`` in the place of ``node``; ``results`` get its outputs' names, and one of them the node's own."""
    new = list(builder.nodes)
    builder.insert_before(node)
    for old, result in zip(node.outputs, results, strict=False):
        result.doc_string = old.doc_string
        result.metadata_props.update(old.metadata_props)
        carry(old, result)
        take_over(old, result, names)
    heir = next((written for written in reversed(new) if written.op_type == node.op_type), new[-1])
    assert node.graph is not None
    node.graph.remove(node, safe=True)
    heir.name = node.name
    heir.doc_string = node.doc_string
    for written in new:
        written.metadata_props.update(node.metadata_props)
    return new
