"""Inline model-local functions.

Functions with a loop are inlined by default, so that rules find every loop in the main graph.

    y = my.F <k = 2> (x)   with   F <k> (a) => (b) { b = Scan <..., body: ... @k ...> (a) }   ->   y = Scan <...> (x)

A function has a loop if its body contains a Scan or Loop at any depth, or calls another function that has a loop. Calls in the main
graph and in its nested graphs are inlined. If no call to an inlined function is left, its definition is removed too.

A function is not inlined in three cases: one of its operators has another meaning in the opset that the model imports, the function
calls itself, or a call does not match the definition. The reason is in ``Inlining.not_inlined``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import onnx
import onnx_ir as ir

from rewrites.graph.dims import without_names
from rewrites.graph.names import Names
from rewrites.graph.walk import all_nodes, inner_graphs, node_graphs

__all__ = ["Inlining", "inline_functions", "inline_functions_with_loops"]


_IDENTITY_SINCE: dict[type, int] = {ir.SequenceType: 14, ir.OptionalType: 16}
_Id = tuple[str, str, str]


@dataclass(frozen=True)
class Inlining:
    """The functions that were inlined, and the functions that were not.

    A function is in both lists if only some of its calls were inlined.

    Attributes:
        inlined: names of the form ``domain::name`` or ``domain::name:overload``.
        not_inlined: pairs of a name in this form and the reason why the function, or a call of it, was not inlined.
    """

    inlined: list[str] = field(default_factory=list)
    not_inlined: list[tuple[str, str]] = field(default_factory=list)


def inline_functions_with_loops(model: ir.Model, *, except_domain: str = "") -> Inlining:
    """Inline functions with a Scan or Loop, except those of the domain ``except_domain``."""

    def is_loop(node: ir.Node) -> bool:
        return node.domain == "" and node.op_type in ("Scan", "Loop") and node.op_identifier() not in model.functions

    return inline_functions(model, lambda function: function.domain != except_domain and any(map(is_loop, all_nodes(function))))


def inline_functions(model: ir.Model, is_wanted: Callable[[ir.Function], bool]) -> Inlining:
    """Inline, in place, the functions for which ``is_wanted`` is True, and the functions that call them.

    The values of an inlined function get names that are unique in the main graph and all graphs in it. Inputs and outputs of the
    model keep their names.
    """
    imports = dict(model.opset_imports)
    wanted: set[_Id] = set()
    not_inlined: dict[_Id, str] = {}
    for key in _with_callers(model, is_wanted):
        if reason := _obstacle(model, key, imports):
            not_inlined[key] = reason
        else:
            wanted.add(key)
    inlined: dict[_Id, None] = {}
    names = Names(ir.Model(model.graph, ir_version=model.ir_version))
    nodes = list(all_nodes(model.graph))
    for node in nodes:
        key = node.op_identifier()
        if key not in wanted:
            continue
        try:
            nodes += _inline_call(node, model.functions[key], names, imports.get("", 1))
            inlined[key] = None
        except _CannotInline as reason:
            not_inlined[key] = str(reason)
    for domain in {node.domain for node in all_nodes(model.graph)} & imports.keys():
        model.opset_imports.setdefault(domain, imports[domain])
    _drop_uncalled(model, list(inlined))
    return Inlining([_name(key) for key in inlined], [(_name(key), reason) for key, reason in not_inlined.items()])


def _with_callers(model: ir.Model, is_wanted: Callable[[ir.Function], bool]) -> list[_Id]:
    wanted = {key for key, function in model.functions.items() if is_wanted(function)}
    while callers := {key for key in model.functions.keys() - wanted if not wanted.isdisjoint(_callees(model, key))}:
        wanted |= callers
    return [key for key in model.functions if key in wanted]


def _callees(model: ir.Model, key: _Id) -> set[_Id]:
    return {node.op_identifier() for node in all_nodes(model.functions[key])} & model.functions.keys()


def _obstacle(model: ir.Model, key: _Id, imports: dict[str, int]) -> str | None:
    """Return the reason why the function ``key`` cannot be inlined, or None if it can.

    If the result is None, add to ``imports`` the opsets that only the function imports.
    """
    reached: set[_Id] = set()
    while new := {callee for caller in (reached or {key}) for callee in _callees(model, caller)} - reached:
        reached |= new
    if key in reached:
        return "it calls itself"
    function = model.functions[key]
    for node in all_nodes(function):
        if node.op_identifier() in model.functions:
            continue
        theirs, ours = function.opset_imports.get(node.domain), imports.get(node.domain)
        if theirs is None:
            return f"it uses {node.domain or 'ai.onnx'}.{node.op_type} but imports no operator set for that"
        if ours is not None and ours != theirs and not _is_same_operator(node, theirs, ours):
            return f"its {node.op_type} has the meaning of operator set {theirs}, but the model imports {ours}"
    for node in all_nodes(function):
        if node.domain in function.opset_imports:
            imports.setdefault(node.domain, function.opset_imports[node.domain])
    return None


def _is_same_operator(node: ir.Node, version: int, other: int) -> bool:
    try:
        since = {onnx.defs.get_schema(node.op_type, v, node.domain).since_version for v in (version, other)}
    except onnx.defs.SchemaError:
        return False
    return len(since) == 1


def _drop_uncalled(model: ir.Model, candidates: list[_Id]) -> None:
    while True:
        called = {node.op_identifier() for node in all_nodes(model.graph)}
        called = called.union(*(_callees(model, key) for key in model.functions))
        unused = [key for key in candidates if key in model.functions and key not in called]
        if not unused:
            return
        for key in unused:
            del model.functions[key]


def _name(key: _Id) -> str:
    domain, name, overload = key
    return f"{domain}::{name}" + (f":{overload}" if overload else "")


class _CannotInline(Exception):
    """The reason why a call cannot be inlined. The model is still unchanged when this is raised."""


def _inline_call(call: ir.Node, function: ir.Function, names: Names, opset: int) -> list[ir.Node]:
    """Replace ``call`` by the function's nodes. Return these nodes and all nodes nested in them.

    Raise _CannotInline if that fails.

    Attribute references are resolved, including those in nested graphs. The outputs keep the names that they have in the call.
    All other names are new. Symbolic sizes are dropped, because they have no meaning outside the function.
    """
    _refuse_mismatch(call, function, opset)
    try:
        body = function.clone()
    except RuntimeError as error:
        raise _CannotInline("its nodes are not in topological order") from error
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
    arguments = dict(zip(body.inputs, [*call.inputs, *[None] * (len(body.inputs) - len(call.inputs))], strict=True))
    for formal, actual in arguments.items():
        for user, index in formal.uses():
            user.replace_input_with(index, actual)
    nodes += _replace_outputs(call, results, arguments)
    graph.insert_before(call, nodes)
    graph.remove(call, safe=True)
    return [inner for node in nodes for inner in (node, *chain.from_iterable(map(all_nodes, node_graphs(node))))]


def _refuse_mismatch(call: ir.Node, function: ir.Function, opset: int) -> None:
    label = f"its call {call.name!r}"
    if call.graph is None or len(call.inputs) > len(function.inputs) or len(call.outputs) > len(function.outputs):
        raise _CannotInline(f"{label} has more inputs or outputs than the function")
    for attribute in (*call.attributes.values(), *function.attributes.values()):
        if attribute.is_ref() or attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
            raise _CannotInline(f"attribute {attribute.name!r} of {label} is a graph or a reference")
    for result in function.outputs[: len(call.outputs)]:
        if result.producer() is not None:
            continue
        position = list(function.inputs).index(result)
        actual = call.inputs[position] if position < len(call.inputs) else None
        if actual is None:
            raise _CannotInline(f"{label} leaves out an input that is also an output")
        if opset < (needed := _IDENTITY_SINCE.get(type(actual.type), 1)):
            raise _CannotInline(f"{label} returns an input that Identity cannot copy before operator set {needed}")


def _resolve_attributes(node: ir.Node, call: ir.Node, function: ir.Function) -> None:
    for name, attribute in list(node.attributes.items()):
        if not attribute.is_ref():
            continue
        actual = call.attributes.get(attribute.ref_attr_name or "", function.attributes.get(attribute.ref_attr_name or ""))
        if actual is None or actual.value is None:
            del node.attributes[name]
        else:
            node.attributes[name] = ir.Attr(name, actual.type, actual.value, doc_string=attribute.doc_string)


def _defined_in(body: ir.Function) -> Iterator[ir.Value]:
    for node in all_nodes(body):
        yield from node.outputs
    for graph in inner_graphs(body):
        yield from graph.inputs
        yield from (value for value in list(graph.initializers.values()) if not value.is_graph_input())


def _replace_outputs(call: ir.Node, results: list[ir.Value], arguments: dict[ir.Value, ir.Value | None]) -> list[ir.Node]:
    """Replace the outputs of ``call`` by ``results``, the outputs of the function.

    A result that is an input of the function, or that the function returns a second time, is copied by an Identity.
    Return these Identity nodes.
    """
    copies = []
    used: set[ir.Value] = set()
    for old, result in zip(call.outputs, results, strict=False):
        new = result
        if result in arguments or result in used:
            copy = ir.node("Identity", [arguments.get(result, result)])
            copies.append(copy)
            new = copy.outputs[0]
            new.type, new.shape = result.type, result.shape
        used.add(new)
        if old.name:
            new.name = old.name
        new.type = old.type if old.type is not None else new.type
        new.shape = old.shape if old.shape is not None else new.shape
        new.doc_string = old.doc_string or new.doc_string
        new.metadata_props.update(old.metadata_props)
        old.replace_all_uses_with(new, replace_graph_outputs=True)
    return copies
