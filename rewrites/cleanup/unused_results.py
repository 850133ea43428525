"""Removes unused scan outputs and states, and the whole loop if none of its results is used.

    hT, ys = Scan(h0, xs)   # ys unused       ->    hT = Scan(h0, xs)
    cT, ys = Scan(c0, xs)   # cT unused, and ys does not depend on the state c    ->    ys = Scan(xs)

A state is needed if its final value is used, or if a needed value of the body depends on it. A Loop also needs its condition, and
before opset 11 at least one state. It is not enough to remove the name of an unused result, because onnxruntime requires a name for
every result of a Scan. So the rule removes the result together with the body output that computes it.

Works around ORT-SCAN-UNNAMED-RESULT.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.analysis.dependence import must_stay, reads, unread_in_loop
from rewrites.base.plain_text import counted
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes
from rewrites.graph.values import is_read
from rewrites.loops import Loop, LoopView, ScanOutput, State, rebuild
from rewrites.loops.view import fewest_states
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch that removes unused scan outputs and states, or the whole loop."""
    outputs = [output for output in loop.scan_outputs if is_read(output.outer)]
    if not outputs and not any(is_read(state.final) for state in loop.states):

        def remove() -> list[ir.Node]:
            remove_nodes([loop.node])
            return []

        return Patch("removed the loop: nobody reads its results", remove)

    used = [state for state in loop.states if is_read(state.final)]
    states = _needed_states(loop, outputs, used)
    if len(states) < fewest_states(loop, ctx):
        states = _needed_states(loop, outputs, loop.states[:1])
    if len(outputs) == len(loop.scan_outputs) and len(states) == len(loop.states):
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        inner = [*(state.next for state in states), *(output.inner for output in outputs)]
        loop.body.outputs[:] = [loop.condition_out, *inner] if isinstance(loop, LoopView) else inner
        remove_nodes(unread_in_loop(loop))
        return [rebuild(loop, ctx.names, states=states, scan_outputs=outputs)]

    count = len(loop.scan_outputs) - len(outputs) + len(loop.states) - len(states)
    return Patch(f"dropped {counted(count, 'result')} nobody reads", edit)


def _needed_states(loop: Loop, outputs: Sequence[ScanOutput], read_states: Sequence[State]) -> list[State]:
    """Return the states on which the condition, the ``outputs`` or the states ``read_states`` depend."""
    needed = set(read_states)
    pending = [*(output.inner for output in outputs), *(state.next for state in read_states)]
    if isinstance(loop, LoopView):
        pending.append(loop.condition_out)
    next_of = {state.inner: state.next for state in loop.states}
    needed_values: set[ir.Value] = set()
    for node in must_stay(loop):
        needed_values.update(node.outputs)
        pending.extend(reads(node))
    while pending:
        value = pending.pop()
        producer = value.producer()
        if value in needed_values:
            continue
        if value in next_of:
            needed_values.add(value)
            pending.append(next_of[value])
        elif producer is not None and producer.graph is loop.body:
            needed_values.update(producer.outputs)
            pending.extend(reads(producer))
    return [state for state in loop.states if state in needed or state.inner in needed_values]


RULE = Rule("unused-results", "cleanup", "loop", check)
