"""On request, a Scan is kept from sequences without steps, which onnxruntime refuses.

    Scan (h0, xs)    ->    If (xs has steps) then Scan (h0, xs) else the initial states and empty results

The operator's text has no such exception: no step leaves the states as they were. Off unless named: the If costs a little in every
run. Comes before the rules that take a Scan apart, since what they write is not made for no step: a native LSTM gives zeros then,
or worse. Conditions: all sizes of the empty results are known where the Scan stands, or a step may be run to find out.

Works round ORT-SCAN-NO-STEPS.
"""

import numpy as np
import onnx_ir as ir

from rewrites.analysis.unsliced_types import unsliced_among
from rewrites.graph.branches import has_steps, say_has_steps, write_if
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import const_array, shape_dims, through_identity
from rewrites.loops import Loop, LoopView, ScanOutput, ScanView, captured_values
from rewrites.loops.rebuild import stand_in_for, written_again
from rewrites.ops.versions import concat, shape_of, squeeze
from rewrites.recurrent_nodes.empty_results import can_run_on_zeros, empty_like, step_on_zeros, zeros_of
from rewrites.recurrent_nodes.guarded import is_guarded
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scan_form.lengths import most_steps

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """See whether the Scan may be given no step."""
    if isinstance(loop, LoopView) or loop.batched or (isinstance(loop.steps, int) and loop.steps > 0):
        return NOTHING_HERE
    first, graph = loop.scan_inputs[0], loop.node.graph
    if graph is None or has_steps(graph) or is_guarded(ctx, graph, first.outer, [first.axis]):
        return NOTHING_HERE
    narrow = unsliced_among((output.inner for output in loop.scan_outputs), ctx.opset)
    if narrow is not None:
        return narrow
    sizes = [_empty_shape(loop, output) for output in loop.scan_outputs]
    unknown = [output for output, places in zip(loop.scan_outputs, sizes, strict=True) if places is None]
    for output, places in zip(loop.scan_outputs, sizes, strict=True):
        if output.inner.dtype is None or (places is None and not can_run_on_zeros(loop, ctx.opset)):
            return NotApplicable("EMPTY-SHAPE", f"not all sizes of '{output.inner.name}' are known before the loop")
        if places is not None and output.inner.dtype == ir.DataType.STRING and not all(isinstance(place, int) for place in places):
            return NotApplicable("EMPTY-SHAPE", f"'{output.inner.name}' holds strings, of a size known only at run time")

    def edit() -> list[ir.Node]:
        b = ctx.builder()
        condition = squeeze(b, b.op("Less", b.const([0]), most_steps(b, loop)), [0])
        some, none = b.another(), b.another()
        old = loop.node
        steps = dict(zip(map(id, unknown), step_on_zeros(none, loop, unknown, ctx), strict=True)) if unknown else {}
        scan = written_again(loop, ctx.names)
        some.nodes.append(scan)
        nothing = [none.op("Identity", state.initial) for state in loop.states]
        for output, places in zip(loop.scan_outputs, sizes, strict=True):
            kind = output.inner.dtype
            assert kind is not None
            like = steps.get(id(output))
            nothing.append(_empty(none, places or [], kind) if like is None else empty_like(none, like, output.axis, kind))
        made = write_if(b, condition, (some, scan.outputs), (none, nothing), old.name)
        say_has_steps(scan.graph)
        guard = b.nodes.pop()
        b.insert_before(old)
        stand_in_for(old, guard, list(zip(old.outputs, made, strict=True)), ctx.names)
        return [scan]

    return Patch("put it under an If for sequences of no step", edit)


def _empty_shape(loop: ScanView, output: ScanOutput) -> list[int | tuple[ir.Value, int]] | None:
    """Return the sizes of an empty result: numbers, or where they are to be read before the loop."""
    found: list[int | tuple[ir.Value, int]]
    source = through_identity(output.inner)
    state = next((state for state in loop.states if through_identity(state.next) is source), None)
    if state is not None and state.initial.shape is not None:  # no step changes the shape of a state
        found = [dim if isinstance(dim, int) else (state.initial, axis) for axis, dim in enumerate(state.initial.shape.dims)]
        return [*found[: output.axis], 0, *found[output.axis :]]
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
    found = []
    for dim in shape_dims(output.inner.shape):
        place = dim if isinstance(dim, int) else named.get(dim or "")
        if place is None:
            return None
        found.append(place)
    found.insert(output.axis, 0)
    return found


def _empty(b: Builder, places: list[int | tuple[ir.Value, int]], kind: ir.DataType) -> ir.Value:
    sizes = [b.const([place]) if isinstance(place, int) else shape_of(b, *place) for place in places]
    known = [const_array(size) for size in sizes]
    if all(size is not None for size in known):
        shape = [int(size.item()) for size in known if size is not None]
        return b.op("Identity", b.const(np.zeros(shape, object if kind == ir.DataType.STRING else kind.numpy())))
    return zeros_of(b, concat(b, sizes, 0), kind)


RULE = Rule("guard-scan", "repair", "loop", check, use="asked")
