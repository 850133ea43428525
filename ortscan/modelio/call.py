"""Replaces one call of a model-local function by the function's nodes."""

from collections.abc import Iterator

import onnx_ir as ir

from rewrites.graph.dims import without_names
from rewrites.graph.names import Names
from rewrites.graph.walk import all_nodes, inner_graphs

__all__ = ["CannotInline", "inline_call"]

_IDENTITY_SINCE: dict[type, int] = {ir.SequenceType: 14, ir.OptionalType: 16}


class CannotInline(Exception):
    """Why a call cannot be inlined; nothing has been changed."""


def inline_call(call: ir.Node, function: ir.Function, names: Names, opset: int) -> list[ir.Node]:
    """Replace ``call`` in its graph, and return the new nodes, those in nested graphs included.

    Attribute references are resolved, also inside nested graphs. All names are fresh but those of the call's outputs. Symbols in
    the function's shapes mean nothing outside it and are dropped.

    Raises:
        CannotInline: the call does not fit the function, or the function is not in a form that can be copied.
    """
    _check(call, function, opset)
    try:
        body = function.clone()
    except RuntimeError as error:
        raise CannotInline("its nodes are not in topological order") from error
    graph = call.graph
    assert graph is not None
    nodes = list(body)
    for node in all_nodes(body):
        _resolve_attributes(node, call, function)
    for value in _defined_in(body):
        if value.name:
            value.name = names.fresh(value.name)
        value.shape = without_names(value.shape)
    for node in all_nodes(body):
        if node.name:
            node.name = names.fresh(node.name)
    results = list(body.outputs)
    body.graph.outputs.clear()
    body.remove(nodes)
    given = dict(zip(body.inputs, [*call.inputs, *[None] * (len(body.inputs) - len(call.inputs))], strict=True))
    for formal, actual in given.items():
        for user, index in formal.uses():
            user.replace_input_with(index, actual)
    nodes += _hand_over(call, results, given)
    graph.insert_before(call, nodes)
    graph.remove(call, safe=True)
    return [inner for node in nodes for inner in _with_nested(node)]


def _check(call: ir.Node, function: ir.Function, opset: int) -> None:
    label = f"its call {call.name!r}"
    if call.graph is None or len(call.inputs) > len(function.inputs) or len(call.outputs) > len(function.outputs):
        raise CannotInline(f"{label} has more inputs or outputs than it")
    for attribute in (*call.attributes.values(), *function.attributes.values()):
        if attribute.is_ref() or attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
            raise CannotInline(f"attribute {attribute.name!r} of {label} is a graph or a reference")
    for result in function.outputs[: len(call.outputs)]:
        if result.producer() is not None:
            continue
        position = list(function.inputs).index(result)
        actual = call.inputs[position] if position < len(call.inputs) else None
        if actual is None:
            raise CannotInline(f"{label} leaves out an input that is also an output")
        if opset < (needed := _IDENTITY_SINCE.get(type(actual.type), 1)):
            raise CannotInline(f"{label} returns an input that Identity cannot copy before operator set {needed}")


def _resolve_attributes(node: ir.Node, call: ir.Node, function: ir.Function) -> None:
    for name, attribute in list(node.attributes.items()):
        if not attribute.is_ref():
            continue
        given = call.attributes.get(attribute.ref_attr_name or "", function.attributes.get(attribute.ref_attr_name or ""))
        if given is None or given.value is None:
            del node.attributes[name]
        else:
            node.attributes[name] = ir.Attr(name, given.type, given.value, doc_string=attribute.doc_string)


def _defined_in(body: ir.Function) -> Iterator[ir.Value]:
    for node in all_nodes(body):
        yield from node.outputs
    for graph in inner_graphs(body):
        yield from graph.inputs
        yield from (value for value in list(graph.initializers.values()) if not value.is_graph_input())


def _hand_over(call: ir.Node, results: list[ir.Value], given: dict[ir.Value, ir.Value | None]) -> list[ir.Node]:
    """Let the results stand for the call's outputs, by name too; copies are made of inputs, and of a result returned twice."""
    copies = []
    taken: set[ir.Value] = set()
    for old, result in zip(call.outputs, results, strict=False):
        new = result
        if result in given or result in taken:
            copy = ir.node("Identity", [given.get(result, result)])
            copies.append(copy)
            new = copy.outputs[0]
            new.type, new.shape = result.type, result.shape
        taken.add(new)
        if old.name:
            new.name = old.name
        new.type = old.type if old.type is not None else new.type
        new.shape = old.shape if old.shape is not None else new.shape
        new.doc_string = old.doc_string or new.doc_string
        new.metadata_props.update(old.metadata_props)
        old.replace_all_uses_with(new, replace_graph_outputs=True)
    return copies


def _with_nested(node: ir.Node) -> Iterator[ir.Node]:
    yield node
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            yield from all_nodes(attribute.as_graph())
        elif attribute.type == ir.AttributeType.GRAPHS:
            for graph in attribute.as_graphs():
                yield from all_nodes(graph)
