"""An induction variable of a Scan becomes a scan input with its values.

    Scan(k0, h0, xs) body(k, h, x) => (k + 2, f(h, x, k))    ->    Scan(h0, xs, k0 + 2 * Range(T)) body(h, x, k) => f(h, x, k)

Nodes that read only this state can then leave the loop. Conditions: an int32 or int64 of one element; its next value is itself
plus a constant other than 0, without floating-point numbers in between. An opset-8 Scan stays, because it has a state for each
batch element.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.analysis.dependence import unread_nodes
from rewrites.analysis.induction.emission import times
from rewrites.analysis.induction.induction_variables import Counter, counters
from rewrites.base.plain_text import listed
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import is_read, static_dims
from rewrites.loops import Loop, ScanInput, ScanView, rebuild
from rewrites.ops.versions import count_up, reshape, shape_of, unsqueeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check", "scanned_instead"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Find induction variables."""
    if not isinstance(loop, ScanView) or loop.batched:
        return NOTHING_HERE
    variables = [counter for counter in counters(loop, ctx.opset) if counter.step and counter.exact_to is None]
    if not variables:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        build = ctx.builder()
        first = loop.scan_inputs[0]
        steps = shape_of(build, first.outer, first.axis)
        inputs = [ScanInput(_numbers(build, counter, steps), counter.state.inner) for counter in variables]
        for counter in variables:
            final = counter.state.final
            if final is not None and is_read(final):
                replace_value(final, _after(build, counter, steps), ctx.names)
        build.insert_before(loop.node)
        return [scanned_instead(loop, inputs, ctx)]

    names = listed(counter.state.inner.name for counter in variables)
    return Patch(f"made the counting states {names} scan inputs", edit)


def scanned_instead(loop: ScanView, inputs: Sequence[ScanInput], ctx: Context) -> ir.Node:
    """Let the loop scan ``inputs`` instead of keeping the states with these inner values; return the new node."""
    gone = {scan.inner for scan in inputs}
    kept = [state for state in loop.states if state.inner not in gone]
    node = rebuild(loop, ctx.names, states=kept, scan_inputs=[*loop.scan_inputs, *inputs])
    remove_nodes(unread_nodes(loop.body))
    return node


def _numbers(b: Builder, counter: Counter, steps: ir.Value) -> ir.Value:
    """Return the stack of the state's values."""
    numbers = times(b, count_up(b, steps), counter.step, counter.state.initial.dtype)
    dims = static_dims(counter.state.initial) or ()
    numbers = unsqueeze(b, numbers, list(range(1, len(dims) + 1)))
    return numbers if counter.start.number == 0 else b.op("Add", numbers, counter.state.initial)


def _after(b: Builder, counter: Counter, steps: ir.Value) -> ir.Value:
    """Return the state after all steps."""
    initial = counter.state.initial
    number = times(b, reshape(b, steps, list(static_dims(initial) or ())), counter.step, initial.dtype)
    return b.op("Identity", number) if counter.start.number == 0 else b.op("Add", number, initial)


RULE = Rule("induction-inputs", "scan_form", "loop", check, formerly="counted-inputs")
