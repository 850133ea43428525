"""Inlines some model-local functions; by default those that hold a loop, so that rules find every loop in the main graph.

    y = my.F <k = 2> (x)   with   F <k> (a) => (b) { b = Scan <..., body: ... @k ...> (a) }   ->   y = Scan <...> (x)

A function holds a loop if a Scan or Loop is in its body, at any depth of nested graphs, or if it calls such a function. Calls
are inlined into the main graph and the graphs nested in it; definitions that nothing calls any more are removed, those that
nothing ever called stay. A function is kept, with the reason, where inlining would not be exact: its operators mean something
else in the model's operator sets, it calls itself, or a call does not fit its definition.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir

from ortscan.modelio.call import CannotInline, inline_call
from rewrites.graph.names import Names
from rewrites.graph.walk import all_nodes

__all__ = ["Inlining", "inline_functions", "inline_functions_with_loops"]

_LOOPS = ("Scan", "Loop")
_Id = tuple[str, str, str]


@dataclass(frozen=True)
class Inlining:
    """What became of the functions to be inlined; names are ``domain::name`` or ``domain::name:overload``.

    ``kept`` pairs names with reasons; a function may be in both lists if only some of its calls could be inlined.
    """

    inlined: list[str] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)


def inline_functions_with_loops(model: ir.Model, *, stay: str = "") -> Inlining:
    """Inline the functions that hold a Scan or Loop, but not those of the domain ``stay``, as ``inline_functions`` does."""

    def wanted(function: ir.Function) -> bool:
        return function.domain != stay and any(_is_loop(node, model) for node in all_nodes(function))

    return inline_functions(model, wanted)


def inline_functions(model: ir.Model, wanted_one: Callable[[ir.Function], bool]) -> Inlining:
    """Inline in place the functions that ``wanted_one`` names, and those that call one of them.

    If anything is inlined, every value gets a name that is unique in the main graph and all graphs in it; public names stay.
    """
    imports = dict(model.opset_imports)
    wanted: set[_Id] = set()
    kept: dict[_Id, str] = {}
    for key in _with_callers(model, wanted_one):
        if reason := _obstacle(model, key, imports):
            kept[key] = reason
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
            nodes += inline_call(node, model.functions[key], names, imports.get("", 1))
            inlined[key] = None
        except CannotInline as reason:
            kept[key] = str(reason)
    for domain in {node.domain for node in all_nodes(model.graph)} & imports.keys():
        model.opset_imports.setdefault(domain, imports[domain])
    _drop_uncalled(model, list(inlined))
    return Inlining([_name(key) for key in inlined], [(_name(key), reason) for key, reason in kept.items()])


def _with_callers(model: ir.Model, wanted_one: Callable[[ir.Function], bool]) -> list[_Id]:
    found = {key for key, function in model.functions.items() if wanted_one(function)}
    while more := {key for key in model.functions.keys() - found if not found.isdisjoint(_callees(model, key))}:
        found |= more
    return [key for key in model.functions if key in found]


def _is_loop(node: ir.Node, model: ir.Model) -> bool:
    return node.domain == "" and node.op_type in _LOOPS and node.op_identifier() not in model.functions


def _callees(model: ir.Model, key: _Id) -> set[_Id]:
    return {node.op_identifier() for node in all_nodes(model.functions[key])} & model.functions.keys()


def _obstacle(model: ir.Model, key: _Id, imports: dict[str, int]) -> str | None:
    """Tell why function ``key`` cannot be inlined; if it can, add to ``imports`` what it needs and the model lacks."""
    reached: set[_Id] = set()
    while more := {callee for caller in (reached or {key}) for callee in _callees(model, caller)} - reached:
        reached |= more
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
            return f"its {node.op_type} is that of operator set {theirs}, and the model's is that of {ours}"
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
