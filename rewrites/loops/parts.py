"""Parts and checks that the views of Scan and Loop share.

A part pairs a value of the body with a value outside. A failed check raises MalformedLoop with a sentence that names the node and
the field.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.base.errors import MalformedLoop
from rewrites.base.plain_text import quoted
from rewrites.graph.type_names import type_name
from rewrites.graph.values import same_type

__all__ = [
    "ScanInput",
    "ScanOutput",
    "State",
    "body_of",
    "check_body_values",
    "check_element_types",
    "int_list_attribute",
    "label",
    "malformed",
]


@dataclass(frozen=True)
class State:
    """A state. The body reads it as ``inner``, and computes its value for the next step as ``next``.

    In the first step, ``inner`` is ``initial``. ``final`` is the output of the loop that holds the last ``next``. It is None if the
    state is new and has no output yet.
    """

    initial: ir.Value
    inner: ir.Value
    next: ir.Value
    final: ir.Value | None


@dataclass(frozen=True)
class ScanInput:
    """A scanned tensor. In each step, ``inner`` is one slice of ``outer`` along ``axis``.

    The first step reads the first slice or, if ``reverse``, the last slice.
    """

    outer: ir.Value
    inner: ir.Value
    axis: int = 0
    reverse: bool = False


@dataclass(frozen=True)
class ScanOutput:
    """A stacked result. ``outer`` stacks ``inner`` of all steps along ``axis``.

    If ``reverse``, the last step comes first. ``empty_sizes``: for a Loop, the sizes that onnxruntime infers for ``inner``. If the
    loop runs no step, ``outer`` has these sizes.
    """

    inner: ir.Value
    outer: ir.Value | None
    axis: int = 0
    reverse: bool = False
    empty_sizes: tuple[int | None, ...] | None = None


def label(node: ir.Node) -> str:
    """Return the name of ``node`` for messages, or the name of its first output if it has no name."""
    if node.name:
        return quoted(node.name)
    named = next((value.name for value in node.outputs if value.name), None)
    return f"producing {quoted(named)}" if named else "without a name"


def malformed(node: ir.Node, field: str, problem: str) -> MalformedLoop:
    """Return the error to raise if ``field`` of ``node`` is invalid."""
    return MalformedLoop(f"{node.op_type} {label(node)}: {field} {problem}.")


def body_of(node: ir.Node) -> ir.Graph:
    """Return the body of the loop ``node``. Raise MalformedLoop if it has none."""
    attribute = node.attributes.get("body")
    if attribute is None or attribute.is_ref() or attribute.type != ir.AttributeType.GRAPH:
        raise malformed(node, "body", "is missing")
    return attribute.as_graph()


def check_body_values(node: ir.Node, body: ir.Graph) -> None:
    """Raise MalformedLoop if a body input is repeated or if the body does not compute an output.

    onnxruntime refuses both.
    """
    names = [value.name for value in body.inputs]
    if len(set(names)) != len(names):
        raise malformed(node, "body", "names the same input twice")
    for value in body.inputs:
        if value.is_initializer():
            raise malformed(node, "body", f"has an initializer for its input '{value.name}', which the loop sets")
    for value in body.outputs:
        producer = value.producer()
        is_outer = value.is_graph_input() or value.is_initializer()
        if not is_outer and (producer is None or producer.graph is not body):
            raise malformed(node, "body", f"returns '{value.name}', which it does not compute (add an Identity)")


def check_element_types(node: ir.Node, outer: ir.Value, inner: ir.Value) -> None:
    """Raise MalformedLoop if an outer value and its value in the body have different element types."""
    if not same_type(outer, inner):
        types = type_name(inner.type), type_name(outer.type)
        raise malformed(
            node, "body", f"has type {types[0]} for '{inner.name}', but '{outer.name}' of type {types[1]} is passed to it"
        )


def int_list_attribute(
    node: ir.Node,
    name: str,
    count: int,
    counted_parts: str,
    allowed: tuple[int, ...] | None = None,
    ranks: Sequence[int | None] | None = None,
) -> list[int]:
    """Return the attribute ``name``, a list of ``count`` integers. If it is absent, return zeros.

    Args:
        node: The loop with the attribute.
        name: The name of the attribute.
        count: The required number of integers.
        counted_parts: The parts of the loop to which the integers belong, for error messages, such as "scan inputs".
        allowed: The allowed integers; None for any.
        ranks: If present, the integers are axes of tensors of these ranks. Negative axes are converted.

    Raises:
        MalformedLoop: The attribute is invalid.
    """
    attribute = node.attributes.get(name)
    if attribute is None:
        for rank in ranks or ():
            if rank == 0:
                raise malformed(node, "inputs", "include a scalar, which has no axis to scan")
        return [0] * count
    values = list(attribute.as_ints()) if attribute.type == ir.AttributeType.INTS else None
    if values is None:
        raise malformed(node, name, "is not a list of integers")
    if len(values) != count:
        raise malformed(node, name, f"has {len(values)} entries, but there are {count} {counted_parts}")
    for i, value in enumerate(values):
        if allowed is not None and value not in allowed:
            raise malformed(node, name, f"has the entry {value}, but only {' and '.join(map(str, allowed))} are allowed")
        rank = ranks[i] if ranks is not None else None
        if rank is not None and not -rank <= value < rank:
            raise malformed(node, name, f"has the entry {value}, but must be in {-rank}..{rank - 1} for a tensor of rank {rank}")
        if rank is not None and value < 0:
            values[i] = value + rank
    return values
