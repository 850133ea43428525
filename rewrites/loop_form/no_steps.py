"""A Loop without steps is replaced by its initial states and empty results.

    z, ys = Loop(0, , h0) body(i, c, h) => (c, f(h), g(h))   # g(h) [2]    ->    z = h0; ys = zeros [0, 2]

Conditions: the trip count is a constant of 0 or less, or the initial condition is constant false. All sizes of the stacked results
that are read are known. If a size is unknown, the size that onnxruntime returns depends on its shape inference.

Works around ORT-LOOP-NO-STEPS-SIZES.
"""

import numpy as np
import onnx_ir as ir

from rewrites.analysis.shapes.sizes_without_steps import known_sizes
from rewrites.graph.context import Context
from rewrites.graph.replace import can_copy, remove_nodes, replace_value
from rewrites.graph.values import const_scalar, is_read
from rewrites.loops import Loop, LoopView
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the loop is known to have no step."""
    if not isinstance(loop, LoopView):
        return NOTHING_HERE
    limit = const_scalar(loop.limit)
    if (limit is None or limit > 0) and (loop.condition is None or const_scalar(loop.condition) is not False):
        return NOTHING_HERE
    results: list[tuple[ir.Value, ir.Value]] = []
    for state in loop.states:
        if state.final is not None:
            if state.final.is_graph_output() and not can_copy(state.initial, ctx.opset):
                detail = f"the state '{state.inner.name}' is returned unchanged, but opset {ctx.opset} cannot copy it"
                return NotApplicable("LOOP-SEQUENCE", detail)
            results.append((state.final, state.initial))
    stacks = [output for output in loop.scan_outputs if output.outer is not None and is_read(output.outer)]
    for output in stacks:
        sizes = known_sizes(output)
        if sizes is None or None in sizes or output.inner.dtype is None:
            return NotApplicable("LOOP-EMPTY", f"and the sizes of its result '{output.inner.name}' are not known")

    def edit() -> list[ir.Node]:
        for output in stacks:
            stacked, kind = known_sizes(output) or (), output.inner.dtype
            assert kind is not None
            nothing = np.zeros((0, *(size or 0 for size in stacked)), object if kind == ir.DataType.STRING else kind.numpy())
            assert output.outer is not None
            results.append((output.outer, ctx.constants.value(nothing, "nothing")))
        for old, new in results:
            replace_value(old, new, ctx.names)
        remove_nodes([loop.node])
        return []

    return Patch("replaced the loop without steps by its initial states and empty results", edit)


RULE = Rule("no-steps", "loop_form", "loop", check)
