"""Every output of a Scan body gets a node of its own; so does a Loop's step number where its body returns it.

    body(s, x) => (s2, s2)    ->    body(s, x) => (s2, Identity(s2))
    body(s, x) => (x, y)      ->    body(s, x) => (Identity(x), y)

onnxruntime computes garbage, silently and at every optimisation level, where a Scan body returns one value under two outputs or
returns an input directly, or a Loop body its step number (seen up to 1.31); the checker accepts such models. What else a Loop
returns directly is never touched: that it does right.
"""

import onnx_ir as ir

from rewrites.context import Context
from rewrites.loops import Loop, LoopView
from rewrites.names import Names
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch

__all__ = ["NAME", "check", "give_own_nodes", "shared_outputs"]

NAME = "own-outputs"


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Find body outputs that have no node of their own."""
    shared = _step_numbers(loop) if isinstance(loop, LoopView) else shared_outputs(loop.body)
    if not shared:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        _copy_outputs(loop.body, shared, ctx.names)
        return [loop.node]

    names = ", ".join(f"'{loop.body.outputs[i].name}'" for i in shared)
    return Patch(f"gave the body outputs {names} nodes of their own", edit)


def shared_outputs(body: ir.Graph) -> list[int]:
    """Give the positions of outputs that are not computed by a node of ``body``, or were returned at an earlier position."""
    seen: set[ir.Value] = set()
    found = []
    for i, value in enumerate(body.outputs):
        producer = value.producer()
        if value in seen or producer is None or producer.graph is not body:
            found.append(i)
        seen.add(value)
    return found


def give_own_nodes(body: ir.Graph, names: Names) -> None:
    """Put an Identity before each output that ``shared_outputs`` finds."""
    _copy_outputs(body, shared_outputs(body), names)


def _step_numbers(loop: LoopView) -> list[int]:
    return [i for i, value in enumerate(loop.body.outputs) if value is loop.iteration]


def _copy_outputs(body: ir.Graph, positions: list[int], names: Names) -> None:
    for i in positions:
        value = body.outputs[i]
        copy = ir.Value(name=names.fresh(f"{value.name}_out"), type=value.type, shape=value.shape)
        body.append(ir.Node("", "Identity", [value], outputs=[copy], name=names.fresh(f"{value.name}/Identity")))
        body.outputs[i] = copy
