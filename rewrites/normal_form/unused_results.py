"""Scan outputs and states that nobody needs go, and the whole loop with them where nothing is left.

    hT, ys = Scan(h0, xs)   # ys unused       ->    hT = Scan(h0, xs)
    cT, ys = Scan(c0, xs)   # c counts, cT and c unused otherwise    ->    ys = Scan(xs)

A state is needed where its final value is used, or where something needed reads it inside; a Loop's condition is always needed.
onnxruntime wants every result of a Scan named, so a result is dropped together with its body output.
"""

import onnx_ir as ir

from rewrites.context import Context
from rewrites.dependence import reads
from rewrites.loops import Loop, LoopView, State, rebuild
from rewrites.moving import remove_nodes
from rewrites.normal_form.dead_code import unread_nodes
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch

__all__ = ["NAME", "check"]

NAME = "unused-results"


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Find results that nobody needs."""
    outputs = [output for output in loop.scan_outputs if _used(output.outer)]
    states = _needed_states(loop, [output.inner for output in outputs])
    if len(outputs) == len(loop.scan_outputs) and len(states) == len(loop.states):
        return NOTHING_HERE
    if not outputs and not states:
        if isinstance(loop, LoopView) and not loop.never_stops_early:
            return NotApplicable("LOOP-CONDITION", "nothing reads the loop's results, but its condition decides when it ends", True)

        def remove() -> list[ir.Node]:
            remove_nodes([loop.node])
            return []

        return Patch("removed the loop: nobody reads its results", remove)

    def edit() -> list[ir.Node]:
        inner = [*(state.next for state in states), *(output.inner for output in outputs)]
        loop.body.outputs[:] = [loop.condition_out, *inner] if isinstance(loop, LoopView) else inner
        remove_nodes(unread_nodes(loop.body))
        return [rebuild(loop, ctx.names, states=states, scan_outputs=outputs)]

    count = len(loop.scan_outputs) - len(outputs) + len(loop.states) - len(states)
    return Patch(f"dropped {count} results nobody reads", edit)


def _used(value: ir.Value | None) -> bool:
    return value is not None and bool(value.uses() or value.is_graph_output())


def _needed_states(loop: Loop, roots: list[ir.Value]) -> list[State]:
    needed = [state for state in loop.states if _used(state.final)]
    if isinstance(loop, LoopView):
        roots = [*roots, loop.condition_out]
    live = {*roots, *(state.next for state in needed)}
    order = list(reversed(list(loop.body)))
    for _ in range(len(loop.states) + 1):
        for node in order:
            if any(value in live for value in node.outputs):
                live.update(reads(node))
        more = [state for state in loop.states if state not in needed and state.inner in live]
        if not more:
            return [state for state in loop.states if state in needed]
        needed += more
        live.update(state.next for state in more)
    raise AssertionError("each round adds a state, so there are at most as many rounds as states")
