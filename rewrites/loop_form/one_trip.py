"""A loop of one step is replaced by the nodes of its body.

    hT, ys = Scan(h0, xs) body(h, x) => (f(h, x), g(h, x))   # xs [1, ...]
    ->    x = Squeeze(xs); hT = f(h0, x); ys = Unsqueeze(g(h0, x))

If the condition of an If in the body depends only on the step number, the If is replaced by one of its branches.

Conditions: the trip count is 1, and the initial condition of a Loop is constant true. An opset-8 Scan stays, because its body works
on single batch elements. If a Loop returns a sequence, Identity must support sequences in this opset. If Squeeze does not support
an element type, the rule uses Reshape, which needs known sizes.
"""

import onnx_ir as ir

from rewrites.analysis.unsliced_types import unsliceable_among
from rewrites.base import since
from rewrites.cleanup.cleanup import clean_up
from rewrites.cleanup.constant_branches import is_if
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import can_copy, move_before, remove_nodes, replace_value
from rewrites.graph.values import const_scalar, static_dims
from rewrites.loops import Loop, LoopView, ScanInput, ScanOutput
from rewrites.ops.versions import reshape, squeeze, unsqueeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the loop has exactly one step."""
    is_one_step = loop.steps == 1
    if isinstance(loop, LoopView) and not is_one_step:
        limit, starts = const_scalar(loop.limit), loop.condition is None or const_scalar(loop.condition) is True
        is_one_step = limit == 1 and starts
    if not is_one_step:
        return NOTHING_HERE
    if loop.batched:
        return NotApplicable("SCAN-8-STATE", "an opset-8 Scan runs its body row by row; lift the model to opset 9 or later first")

    parts: list[ScanInput | ScanOutput] = [*loop.scan_inputs, *loop.scan_outputs]
    if ctx.opset < since.NEGATIVE_AXES and any(part.axis < 0 for part in parts):
        return NotApplicable("RANK-UNKNOWN", f"an axis counts from the end of a tensor of unknown rank, in opset {ctx.opset}")
    for value in [*(scan.outer for scan in loop.scan_inputs), *(output.inner for output in loop.scan_outputs)]:
        refusal = unsliceable_among([value], ctx.opset)
        if refusal is not None and not _can_be_reshaped(value, ctx.opset):
            return refusal
    for state in loop.states:
        returned = state.final is not None and state.final.is_graph_output() and state.next.producer() is None
        if returned and not can_copy(state.initial, ctx.opset):
            detail = f"the state '{state.inner.name}' is returned unchanged, but opset {ctx.opset} cannot copy it"
            return NotApplicable("LOOP-SEQUENCE", detail)

    def edit() -> list[ir.Node]:
        build = ctx.builder()
        outer_values = {state.inner: state.initial for state in loop.states}
        outer_values.update({scan.inner: _remove_steps_axis(build, scan) for scan in loop.scan_inputs})
        if isinstance(loop, LoopView):
            outer_values.update({inner: ctx.constants.value(array) for inner, array in loop.inputs_in_step(0).items()})
        build.insert_before(loop.node)
        loop.body.outputs[:] = []
        for inner, outer in outer_values.items():
            replace_value(inner, outer, ctx.names)
        inside, graph = list(loop.body), loop.node.graph
        move_before(loop.node, inside, ctx.names)
        for state in loop.states:
            if state.final is not None:
                replace_value(state.final, outer_values.get(state.next, state.next), ctx.names)
        for output in loop.scan_outputs:
            if output.outer is not None:
                stacked = _add_steps_axis(build, outer_values.get(output.inner, output.inner), output)
                build.insert_before(loop.node)
                replace_value(output.outer, stacked, ctx.names)
        remove_nodes([loop.node])
        if isinstance(graph, ir.Graph) and any(map(is_if, inside)):
            clean_up(graph, inside, ctx)
        return []

    return Patch("replaced the loop of one step by its body", edit)


def _can_be_reshaped(value: ir.Value, opset: int) -> bool:
    """Return True if a Reshape must and can replace Squeeze and Unsqueeze for ``value``, a float8 tensor."""
    dims = static_dims(value)
    is_float8 = value.dtype is not None and value.dtype.name.startswith("FLOAT8E") and value.dtype != ir.DataType.FLOAT8E8M0
    return is_float8 and opset >= since.FLOAT8_RESHAPE and dims is not None and 0 not in dims


def _remove_steps_axis(build: Builder, scan: ScanInput) -> ir.Value:
    """Emit the only slice of a scan input, without the axis of the steps."""
    if not _can_be_reshaped(scan.outer, build.opset):
        return squeeze(build, scan.outer, [scan.axis])
    dims = list(static_dims(scan.outer) or ())
    del dims[scan.axis]
    return reshape(build, scan.outer, dims)


def _add_steps_axis(build: Builder, value: ir.Value, output: ScanOutput) -> ir.Value:
    """Emit the stack of the only value of a scan output."""
    if not _can_be_reshaped(output.inner, build.opset):
        return unsqueeze(build, value, [output.axis])
    dims = list(static_dims(output.inner) or ())
    dims.insert(output.axis % (len(dims) + 1), 1)
    return reshape(build, value, dims)


RULE = Rule("one-trip", "loop_form", "loop", check)
