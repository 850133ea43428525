"""Turns a state that no step changes into a captured value.

    Scan(w, xs) body(w_in, x) => (Identity(w_in), f(w_in, x))    ->    Scan(xs) body(x) => f(w, x)

The body must return the state unchanged, directly or through Identity nodes. Users of the final value then read the initial value.
A loop that has no results afterwards is removed.

These states stay:

- states of an opset-8 Scan, because a body cannot capture the value of a single batch element
- sequences and optionals that the graph returns, if the opset has no Identity for them
- the last state of a Loop in an opset before 11, because a Loop must have a state there
"""

from dataclasses import replace

import onnx_ir as ir

from rewrites.base.plain_text import listed
from rewrites.graph.context import Context
from rewrites.graph.replace import can_copy, remove_nodes, replace_value
from rewrites.graph.values import through_identity
from rewrites.loops import Loop, LoopView, State, rebuild
from rewrites.loops.view import fewest_states
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the loop has states that no step changes."""
    unchanged = [
        state for state in loop.states if through_identity(state.next) is state.inner and _can_be_captured(state, loop, ctx)
    ]
    if loop.scan_outputs and len(unchanged) == len(loop.states):
        unchanged = unchanged[fewest_states(loop, ctx) :]
    if not unchanged:
        return NOTHING_HERE
    if loop.batched:
        return NotApplicable(
            "SCAN-8-STATE", "an opset-8 Scan passes its states row by row; lift the model to opset 9 or later first"
        )

    def edit() -> list[ir.Node]:
        kept = [state for state in loop.states if state not in unchanged]
        lead = loop.body.outputs[:1] if isinstance(loop, LoopView) else []
        results = [*(state.next for state in kept), *(output.inner for output in loop.scan_outputs)]
        loop.body.outputs[:] = [*lead, *results]
        for state in unchanged:
            replace_value(state.inner, state.initial, ctx.names)
            if state.final is not None:
                replace_value(state.final, state.initial, ctx.names)
        # if the body returns a removed state as another output too, that output has changed
        results_now = list(loop.body.outputs)
        if len(results_now) == len(lead):
            remove_nodes([loop.node])
            return []
        changed = replace(loop, condition_out=results_now.pop(0)) if isinstance(loop, LoopView) else loop
        states = [replace(state, next=value) for state, value in zip(kept, results_now, strict=False)]
        stacked = zip(loop.scan_outputs, results_now[len(kept) :], strict=True)
        outputs = [replace(output, inner=value) for output, value in stacked]
        return [rebuild(changed, ctx.names, states=states, scan_outputs=outputs)]

    names = listed(state.inner.name for state in unchanged)
    return Patch(f"made the unchanged states {names} captures", edit)


def _can_be_captured(state: State, loop: Loop, ctx: Context) -> bool:
    """Return True if the body can capture the initial value of ``state`` instead.

    If the graph returns the state, or if the body returns it a second time, the opset must be able to copy the value.
    """
    is_graph_output = state.final is not None and state.final.is_graph_output()
    is_returned_elsewhere = sum(value is state.inner for value in loop.body.outputs) > (state.next is state.inner)
    return not (is_graph_output or is_returned_elsewhere) or can_copy(state.initial, ctx.opset)


RULE = Rule("pass-through-states", "cleanup", "loop", check)
