"""A Loop without states gets one that passes through, where the opset wants one: before 11 a Loop has three operands at least."""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.loops import LoopView, loops_in, view
from rewrites.loops.parts import State
from rewrites.loops.rebuild import rebuild

__all__ = ["give_states"]

_FREE_OF_STATES = 11


def give_states(ctx: Context) -> None:
    """Carry the trip count, or the condition, through the Loops of an older model that have nothing to carry."""
    if ctx.opset >= _FREE_OF_STATES:
        return
    for node in loops_in(ctx.model.graph):
        loop = view(node, ctx.opset)
        if isinstance(loop, LoopView) and not loop.states:
            _carry(loop, loop.limit or loop.condition, ctx)


def _carry(loop: LoopView, carried: ir.Value | None, ctx: Context) -> None:
    if carried is None:
        return
    inner = ir.Value(name=ctx.names.fresh("carried"), type=carried.type, shape=carried.shape)
    copy = ir.Value(name=ctx.names.fresh("carried"), type=carried.type, shape=carried.shape)
    loop.body.append(ir.Node("", "Identity", [inner], outputs=[copy], name=ctx.names.fresh("carried/Identity")))
    rebuild(loop, ctx.names, states=[State(carried, inner, copy, None)])
