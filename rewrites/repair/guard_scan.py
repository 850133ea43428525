"""Protects a Scan, on request, from sequences without steps, which onnxruntime refuses.

    Scan (h0, xs)    ->    If (xs has steps) then Scan (h0, xs) else the initial states and empty results

By the definition of the operator, the states keep their initial values if there are no steps. The rule only runs if the user asks
for it by name, because the If costs a little time in every run. It runs before rules that replace a Scan. Otherwise the replacement
might return something else for a sequence without steps: an LSTM node, for example, returns zeros or uninitialised memory.

Condition: All sizes of the empty results are known before the Scan, or the model can run a step on zeros to find these sizes.

Works around ORT-SCAN-NO-STEPS.
"""

import numpy as np
import onnx_ir as ir

from rewrites.analysis.unsliced_types import unsliceable_among
from rewrites.graph.branches import has_steps, say_has_steps, write_if
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import const_array, shape_dims, through_identity
from rewrites.loops import Loop, LoopView, ScanOutput, ScanView, captured_values
from rewrites.loops.rebuild import detached_copy, replace_node
from rewrites.ops.versions import concat, shape_of, squeeze
from rewrites.recurrent_nodes.expand import zeros_of
from rewrites.recurrent_nodes.guarded import can_run_on_zeros, empty_like, is_guarded, step_on_zeros
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scan_form.step_counts import emit_step_count

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the Scan might run zero steps."""
    if isinstance(loop, LoopView) or loop.batched or (isinstance(loop.steps, int) and loop.steps > 0):
        return NOTHING_HERE
    first, graph = loop.scan_inputs[0], loop.node.graph
    if graph is None or has_steps(graph) or is_guarded(ctx, graph, first.outer, [first.axis]):
        return NOTHING_HERE
    unsliced = unsliceable_among((output.inner for output in loop.scan_outputs), ctx.opset)
    if unsliced is not None:
        return unsliced
    sizes = [_empty_shape(loop, output) for output in loop.scan_outputs]
    unknown = [output for output, dims in zip(loop.scan_outputs, sizes, strict=True) if dims is None]
    for output, dims in zip(loop.scan_outputs, sizes, strict=True):
        if output.inner.dtype is None or (dims is None and not can_run_on_zeros(loop, ctx.opset)):
            return NotApplicable("EMPTY-SHAPE", f"not all sizes of '{output.inner.name}' are known before the loop")
        if dims is not None and output.inner.dtype == ir.DataType.STRING and not all(isinstance(dim, int) for dim in dims):
            return NotApplicable("EMPTY-SHAPE", f"'{output.inner.name}' holds strings, of a size known only at run time")

    def edit() -> list[ir.Node]:
        b = ctx.builder()
        condition = squeeze(b, b.op("Less", b.const([0]), emit_step_count(b, loop)), [0])
        some, none = b.another(), b.another()
        old = loop.node
        steps = dict(zip(map(id, unknown), step_on_zeros(none, loop, unknown, ctx), strict=True)) if unknown else {}
        scan = detached_copy(loop, ctx.names)
        some.nodes.append(scan)
        empty_results = [none.op("Identity", state.initial) for state in loop.states]
        for output, dims in zip(loop.scan_outputs, sizes, strict=True):
            kind = output.inner.dtype
            assert kind is not None
            one_step = steps.get(id(output))
            empty_results.append(
                _empty_result(none, dims or [], kind) if one_step is None else empty_like(none, one_step, output.axis, kind)
            )
        chosen = write_if(b, condition, (some, scan.outputs), (none, empty_results), old.name)
        say_has_steps(scan.graph)
        guard = b.nodes.pop()
        b.insert_before(old)
        replace_node(old, guard, list(zip(old.outputs, chosen, strict=True)), ctx.names)
        return [scan]

    return Patch("put it under an If that skips it for sequences without steps", edit)


def _empty_shape(loop: ScanView, output: ScanOutput) -> list[int | tuple[ir.Value, int]] | None:
    """Return the sizes of ``output`` if the Scan runs no step, or None if one of the sizes is unknown.

    Each size is a number, or a pair (value, axis) that stands for the size of this axis of a tensor outside the loop.
    """
    sizes: list[int | tuple[ir.Value, int]]
    source = through_identity(output.inner)
    state = next((state for state in loop.states if through_identity(state.next) is source), None)
    if state is not None and state.initial.shape is not None:  # no step changes the shape of a state
        sizes = [dim if isinstance(dim, int) else (state.initial, axis) for axis, dim in enumerate(state.initial.shape.dims)]
        return [*sizes[: output.axis], 0, *sizes[output.axis :]]
    if output.inner.shape is None:
        return None
    values = [*(state.initial for state in loop.states), *(scan.outer for scan in loop.scan_inputs), *captured_values(loop.body)]
    named = {
        dim: (value, axis)
        for value in values
        if value.shape is not None
        for axis, dim in enumerate(shape_dims(value.shape))
        if isinstance(dim, str)
    }
    sizes = []
    for dim in shape_dims(output.inner.shape):
        size = dim if isinstance(dim, int) else named.get(dim or "")
        if size is None:
            return None
        sizes.append(size)
    sizes.insert(output.axis, 0)
    return sizes


def _empty_result(b: Builder, dims: list[int | tuple[ir.Value, int]], kind: ir.DataType) -> ir.Value:
    sizes = [b.const([dim]) if isinstance(dim, int) else shape_of(b, *dim) for dim in dims]
    known = [const_array(size) for size in sizes]
    if all(size is not None for size in known):
        shape = [int(size.item()) for size in known if size is not None]
        return b.op("Identity", b.const(np.zeros(shape, object if kind == ir.DataType.STRING else kind.numpy())))
    return zeros_of(b, concat(b, sizes, 0), kind)


RULE = Rule("guard-scan", "repair", "loop", check, use="asked")
