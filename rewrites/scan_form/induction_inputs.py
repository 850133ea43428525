"""An induction variable, a state to which each step adds a constant, becomes a scan input.

    Scan(k0, h0, xs) body(k, h, x) => (k + 2, f(h, x, k))    ->    Scan(h0, xs, k0 + 2 * Range(T)) body(h, x, k) => f(h, x, k)

Nodes that depend only on this state can then be moved out of the loop.

Conditions:

* The state has one element of int32 or int64.
* Each step adds a constant other than 0, without computing in floats.
* The loop is not an opset-8 Scan, which has a separate state for each batch element.
"""

import onnx_ir as ir

from rewrites.analysis.induction.emission import emit_multiple
from rewrites.analysis.induction.induction_variables import Counter, counters
from rewrites.base.plain_text import listed
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import replace_value
from rewrites.graph.values import is_read, static_dims
from rewrites.loops import Loop, ScanInput, ScanView
from rewrites.ops.versions import count_up, reshape, shape_of, unsqueeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scan_form.scanned_states import replace_states_by_scan_inputs

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the loop is a Scan with induction variables."""
    if not isinstance(loop, ScanView) or loop.batched:
        return NOTHING_HERE
    variables = [counter for counter in counters(loop, ctx.opset) if counter.step and counter.exact_to is None]
    if not variables:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        build = ctx.builder()
        first = loop.scan_inputs[0]
        steps = shape_of(build, first.outer, first.axis)
        inputs = [ScanInput(_emit_values(build, counter, steps), counter.state.inner) for counter in variables]
        for counter in variables:
            final = counter.state.final
            if final is not None and is_read(final):
                replace_value(final, _emit_final_value(build, counter, steps), ctx.names)
        build.insert_before(loop.node)
        return [replace_states_by_scan_inputs(loop, [counter.state for counter in variables], inputs, ctx)]

    names = listed(counter.state.inner.name for counter in variables)
    return Patch(f"made the counting states {names} scan inputs", edit)


def _emit_values(b: Builder, counter: Counter, steps: ir.Value) -> ir.Value:
    """Emit a stack of the values that the state has in all steps, and return it."""
    numbers = emit_multiple(b, count_up(b, steps), counter.step, counter.state.initial.dtype)
    dims = static_dims(counter.state.initial) or ()
    numbers = unsqueeze(b, numbers, list(range(1, len(dims) + 1)))
    return numbers if counter.start.number == 0 else b.op("Add", numbers, counter.state.initial)


def _emit_final_value(b: Builder, counter: Counter, steps: ir.Value) -> ir.Value:
    """Emit the value of the state after the last step, and return it."""
    initial = counter.state.initial
    number = emit_multiple(b, reshape(b, steps, list(static_dims(initial) or ())), counter.step, initial.dtype)
    return b.op("Identity", number) if counter.start.number == 0 else b.op("Add", number, initial)


RULE = Rule("induction-inputs", "scan_form", "loop", check, formerly="counted-inputs")
