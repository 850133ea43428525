"""A Loop without states gets one that passes through, where the opset wants one: before 11 a Loop has three operands at least."""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.loops import LoopView, loops_in, view
from rewrites.loops.parts import State
from rewrites.loops.rebuild import rebuild
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_FREE_OF_STATES = 11


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Find the Loops of an older model that have nothing to carry: the trip count, or the condition, is carried through them."""
    if ctx.opset >= _FREE_OF_STATES:
        return NOTHING_HERE
    loops = [view(node, ctx.opset) for node in loops_in(model.graph)]
    found = [loop for loop in loops if isinstance(loop, LoopView) and not loop.states and (loop.limit or loop.condition)]

    def edit() -> list[ir.Node]:
        for loop in found:
            _carry(loop, loop.limit or loop.condition, ctx)
        return []

    return Patch("gave Loops without states one that passes through, which their opset wants", edit) if found else NOTHING_HERE


def _carry(loop: LoopView, carried: ir.Value | None, ctx: Context) -> None:
    if carried is None:
        return
    inner = ir.Value(name=ctx.names.fresh("carried"), type=carried.type, shape=carried.shape)
    copy = ir.Value(name=ctx.names.fresh("carried"), type=carried.type, shape=carried.shape)
    loop.body.append(ir.Node("", "Identity", [inner], outputs=[copy], name=ctx.names.fresh("carried/Identity")))
    rebuild(loop, ctx.names, states=[State(carried, inner, copy, None)])


RULE = Rule("stateless-loops", "tidy", "model", check, use="always")
