"""Lets a Loop that may stop early run all its steps, for targets without Loop.

    h = Loop(5, c0, h0) body(i, c, h) => (g(h), f(h))
    ->    h = Loop(5, true, h0, c0) body(i, c, h, going) => (c, Where(going, f(h), h), And(going, g(h)))

After the step at which the Loop would have stopped, its states keep their values. The new Loop is then unrolled. Conditions:

* The trip count M is a constant and small enough to unroll.
* The Loop stacks no results, because the size of a stack depends on the number of steps.
* No operator of the body can fail or draws random numbers.
* The states are tensors whose sizes are known and the same in all steps.
* The body succeeds in a trial run on zeros. This is required because the original Loop might never run the body.
"""

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic
from rewrites.analysis.shapes.refine import shapes_of_kept_states
from rewrites.analysis.speculation import node_failing_if_run, runs_on_zeros
from rewrites.analysis.unroll_limits import nodes_when_unrolled
from rewrites.base import since
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import const_scalar, rank_of, static_dims
from rewrites.graph.walk import all_nodes
from rewrites.loops import Loop, LoopView, State, rebuild
from rewrites.loops.parts import label
from rewrites.ops.versions import reshape, where
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scan_form.step_counts import set_trip_count

__all__ = ["RULE", "check"]

_CODE = "EARLY-EXIT"
_NODES_A_STATE = 4
"""An upper bound of the nodes that choose between the old and the new value of a state."""


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a Loop that may stop early can run all its steps instead."""
    if not isinstance(loop, LoopView) or loop.never_stops_early or ctx.opset < since.WHERE:
        return NOTHING_HERE
    if "Loop" in ctx.options.target.control_flow or ctx.options.unroll.steps == 0:
        return NOTHING_HERE
    limit = const_scalar(loop.limit)
    steps = 0 if limit is None else max(0, int(limit))
    limits = ctx.options.unroll
    nodes = nodes_when_unrolled(loop, steps) + steps * (_NODES_A_STATE * len(loop.states) + 2)
    if limit is None or nodes > limits.nodes or (limits.steps is not None and steps > limits.steps):
        most = "has no constant trip count M" if limit is None else f"may take {steps} steps, which make up to {nodes} nodes"
        return NotApplicable(_CODE, f"the condition is computed in the body, and the Loop {most}: too many to run all of them")
    reason = _obstacle(loop, ctx)
    if reason is not None:
        return NotApplicable(_CODE, f"{reason}, so steps after the last one cannot run")

    def edit() -> list[ir.Node]:
        masked = LoopView.of(_mask_states(loop, ctx), ctx.opset)
        set_trip_count(masked, ctx.constants.value(np.array(steps, np.int64)), ctx)
        return [masked.node]

    return Patch(f"runs all {steps} steps, and keeps its states from the step at which it was to stop", edit)


def _obstacle(loop: LoopView, ctx: Context) -> str | None:
    if loop.scan_outputs:
        return f"'{loop.scan_outputs[0].inner.name}' is stacked, once for each step"
    culprit = next((node for node in all_nodes(loop.body) if not is_deterministic(node)), None) or node_failing_if_run(loop.body)
    if culprit is not None:
        return f"{culprit.op_type} {label(culprit)} might fail, or draw other numbers"
    for state in loop.states:
        dims = [static_dims(value) for value in (state.initial, state.inner, state.next)]
        if not isinstance(state.initial.type, ir.TensorType) or None in dims or dims.count(dims[0]) < len(dims):
            return f"the sizes of the state '{state.inner.name}' are not known, or change"
    unsettled = shapes_of_kept_states(loop, ctx)
    if isinstance(unsettled, NotApplicable):
        return unsettled.detail
    return None if runs_on_zeros(loop.body, ctx) else "the body does not run on zeros"


def _mask_states(loop: LoopView, ctx: Context) -> ir.Node:
    """Let all states keep their values after the Loop's condition has become false.

    Return the new Loop.
    """
    going = ir.Value(name=ctx.names.fresh("going"), type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]))
    outside, inside = ctx.builder(), ctx.builder()
    first = ctx.constants.value(np.array(True)) if loop.condition is None else _scalar(outside, loop.condition)
    states = [replace(state, next=where(inside, going, state.next, state.inner)) for state in loop.states]
    still_going = inside.op("And", going, _scalar(inside, loop.condition_out))
    outside.insert_before(loop.node)
    inside.append_to(loop.body)
    return rebuild(loop, ctx.names, states=[*states, State(first, going, still_going, None)])


def _scalar(build: Builder, flag: ir.Value) -> ir.Value:
    return flag if rank_of(flag) == 0 else reshape(build, flag, [])


RULE = Rule("early-exits", "unroll", "loop", check)
