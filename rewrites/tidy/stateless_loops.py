"""Gives a Loop without states a constant state, because a Loop before opset 11 needs 3 operands."""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.loops import LoopView, loops_in, view
from rewrites.loops.parts import State
from rewrites.loops.rebuild import rebuild
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_FREE_OF_STATES = 11


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a model before opset 11 has Loops without states.

    The new state holds the trip count or the condition.
    """
    if ctx.opset >= _FREE_OF_STATES:
        return NOTHING_HERE
    loops = (view(node, ctx.opset) for node in loops_in(model.graph))
    stateless = [loop for loop in loops if isinstance(loop, LoopView) and not loop.states]
    carrying = [(loop, carried) for loop in stateless if (carried := loop.limit or loop.condition) is not None]

    def edit() -> list[ir.Node]:
        for loop, carried in carrying:
            _add_state(loop, carried, ctx)
        return []

    return Patch("gave Loops without states one that no step changes, as their opset requires", edit) if carrying else NOTHING_HERE


def _add_state(loop: LoopView, carried: ir.Value, ctx: Context) -> None:
    inner = ir.Value(name=ctx.names.fresh("carried"), type=carried.type, shape=carried.shape)
    copy = ir.Value(name=ctx.names.fresh("carried"), type=carried.type, shape=carried.shape)
    loop.body.append(ir.Node("", "Identity", [inner], outputs=[copy], name=ctx.names.fresh("carried/Identity")))
    rebuild(loop, ctx.names, states=[State(carried, inner, copy, None)])


RULE = Rule("stateless-loops", "tidy", "model", check, use="always")
