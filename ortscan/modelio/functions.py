"""Inlines model-local functions that hold a loop, and only those, so that rules find every loop in the main graph.

    y = my.F <k = 2> (x)   with   F <k> (a) => (b) { b = Scan <..., body: ... @k ...> (a) }   ->   y = Scan <...> (x)

A function holds a loop if a Scan or Loop is in its body, at any depth of nested graphs, or if it calls such a function. Calls
are inlined into the main graph and its bodies; definitions nothing calls any more are removed, those that were never called
stay. A function is kept as it is, with the reason, where inlining would not be exact: its operators mean something else in the
model's operator sets, it takes a graph as an attribute, it calls itself, or a call does not fit its definition.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir

from ortscan.modelio.call import Call

__all__ = ["Inlining", "inline_functions_with_loops"]

_LOOPS = ("Scan", "Loop")
_Id = tuple[str, str, str]


@dataclass(frozen=True)
class Inlining:
    """What became of the functions that hold a loop, by name (``domain::name`` or ``domain::name:overload``)."""

    inlined: list[str] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)
    """Names with the reason why they were not inlined."""


def inline_functions_with_loops(model: ir.Model) -> Inlining:
    """Inline in place. Every value keeps a name that is unique in the whole main graph; public names stay."""
    reasons: dict[_Id, str] = {}
    wanted: list[_Id] = []
    for key in _with_loops(model):
        if reason := _obstacle(model, key):
            reasons[key] = reason
        else:
            wanted.append(key)
    imports = _missing_imports(model, wanted, reasons)
    calls = list(_calls_in_main_graph(model))
    for node in calls:
        key = node.op_identifier()
        if key in wanted and key not in reasons and (reason := Call(node, model.functions[key]).misfit()):
            reasons[key] = reason
    wanted = [key for key in wanted if key not in reasons]
    done = _expand(model, set(wanted), reasons)
    _import(model, imports, done)
    _drop_uncalled(model, done)
    return Inlining([_name(key) for key in wanted if key in done], [(_name(key), reason) for key, reason in reasons.items()])
