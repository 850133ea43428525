"""A state variable that is handed on unchanged becomes a capture.

    Scan(w, xs) body(w_in, x) => (Identity(w_in), f(w_in, x))    ->    Scan(xs) body(x) => f(w, x)

Conditions: the body returns the state's own input, through Identity nodes at most. Final uses read the initial value. Never a
state of an opset-8 Scan: its body sees one row of the batch, which no capture gives.
"""

import onnx_ir as ir

from rewrites.context import Context
from rewrites.loops import Loop, rebuild, view
from rewrites.replace import replace_value
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch
from rewrites.values import through_identity

__all__ = ["NAME", "check"]

NAME = "pass-through-states"


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Find states that no step changes."""
    passengers = [state for state in loop.states if through_identity(state.next) is state.inner]
    if not passengers:
        return NOTHING_HERE
    if loop.batched:
        return NotApplicable(
            "SCAN-8-STATE", "an opset-8 Scan passes its states row by row; lift the model to opset 9 or later first"
        )

    def edit() -> list[ir.Node]:
        for state in passengers:
            replace_value(state.inner, state.initial, ctx.names)
            if state.final is not None:
                replace_value(state.final, state.initial, ctx.names)
        changed = view(loop.node, ctx.opset)  # a passenger that the body returned elsewhere too is another value there now
        kept = [now for now, before in zip(changed.states, loop.states, strict=True) if before not in passengers]
        return [rebuild(changed, ctx.names, states=kept)]

    names = ", ".join(f"'{state.inner.name}'" for state in passengers)
    return Patch(f"made the unchanged states {names} captures", edit)
