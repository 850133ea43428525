"""A loop that is a recurrent cell becomes the native node.

    Scan(h0, c0, xs) body(h, c, x) => (o * tanh(c2), c2 = f * c + i * g, ...)    ->    LSTM(xs, W, R, B, , h0, c0)

However the cell is written: its values are read as polynomials of activations of affine maps, and the families are read off those.
Conditions: weights are loop-invariant and of known shapes; states are tensors of float32 or float16 whose last axis holds
the features; the native node is faster where the model will run, which is onnxruntime's CPU for a cell that a target has no node
for and that cannot be unrolled either; a probe at random points agrees. Rows may keep their states in some steps, on a condition
that is the same for all of a row (opset 11). What else the body computes stays in a loop that scans the hidden states, for other
rules to take apart: the cell state too, where that of each step is needed, which no node gives.
"""

from dataclasses import replace

import onnx_ir as ir

from rewrites.analysis.unread_nodes import unread_nodes
from rewrites.base import since
from rewrites.base.made import Made
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.graph.marks import BLOCKS
from rewrites.graph.moving import remove_nodes
from rewrites.graph.replace import replace_value
from rewrites.graph.values import through_identity
from rewrites.loops import Loop, LoopView, ScanInput, ScanView, rebuild
from rewrites.loops.own_results import give_own_nodes
from rewrites.recurrences.cells.cell import source_of
from rewrites.recurrences.cells.cost import too_slow, too_slow_with_cells
from rewrites.recurrences.cells.fitness import unfit
from rewrites.recurrences.cells.found_cells import Found, found_cells
from rewrites.recurrences.cells.given_values import write_given
from rewrites.recurrences.cells.in_words import cell_in_words
from rewrites.recurrences.cells.near_miss import why_no_cell
from rewrites.recurrences.cells.on_target import not_there, stays_on_cpu
from rewrites.recurrences.cells.probe import probe
from rewrites.recurrences.cells.remainder import remainder
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


_PRODUCTS = frozenset({"DynamicQuantizeMatMul", "Einsum", "GRU", "Gemm", "LSTM", "MatMul", "MatMulInteger", "QLinearMatMul", "RNN"})


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Look for a cell among the loop's states."""
    if isinstance(loop, LoopView) or loop.batched or not loop.states or ctx.opset < since.NATIVE_CELLS:
        return NOTHING_HERE
    axes = [scan.axis for scan in loop.scan_inputs] + [output.axis for output in loop.scan_outputs]
    directions = {scan.reverse for scan in loop.scan_inputs} | {output.reverse for output in loop.scan_outputs}
    if any(axes) or BLOCKS.on(loop.node) or (ctx.opset < since.SLICE_INPUTS and len(directions) > 1):
        return NOTHING_HERE
    if not any(node.op_type in _PRODUCTS for node in loop.body):
        return NOTHING_HERE
    reason: NotApplicable | None = None
    for found in found_cells(loop, ctx.opset):
        answer = _fused(loop, found, ctx)
        is_a = cell_in_words(found.cell, True in directions, found.mask is not None)
        if isinstance(answer, Patch):
            return replace(answer, made=replace(answer.made, is_a=is_a))
        reason = replace(answer, is_a=is_a)
    return reason or why_no_cell(loop, ctx.opset)


def _fused(loop: ScanView, found: Found, ctx: Context) -> Patch | NotApplicable:
    cell, reading, mask = found.cell, found.reading, found.mask
    absent = not_there(cell, mask is not None, ctx.options.target)
    falls_back = absent is not None and stays_on_cpu(loop, ctx)
    if falls_back:
        ctx = replace(ctx, options=replace(ctx.options, native_always=False))
    obstacle = (
        unfit(cell, reading)
        or (None if falls_back else absent)
        or too_slow(cell, reading.dims[source_of(cell.hidden)], loop.steps, mask is not None, ctx.options)
    )
    if obstacle is not None:
        return obstacle
    if mask is not None and ctx.opset < since.NATIVE_MASKS:
        return NotApplicable(
            "CELL-MASK", f"rows that keep their state need opset {since.NATIVE_MASKS}, and the model has {ctx.opset}"
        )
    rest = remainder(loop, cell, reading, mask)
    if rest is None:
        detail = (
            f"the cell state beside '{cell.hidden.inner.name}' is needed in each step, which the {cell.op_type} node does not give"
        )
        return NotApplicable("CELL-SEQUENCE", detail)
    slow = too_slow_with_cells(cell, reading.dims[source_of(cell.hidden)], ctx.options) if cell.cell in rest.states else None
    if slow is not None:
        return slow
    if probe(cell, reading, ctx, mask, found.weights) is not True:
        detail = f"the {cell.op_type} read off '{cell.hidden.inner.name}' was not confirmed by running the body"
        return NotApplicable("CELL-PROBE", detail)
    stacks = Stacks(loop, ctx.builder())
    given = write_given(stacks, found, rest, ctx)
    if isinstance(given, NotApplicable):
        return given
    for output in loop.scan_outputs:
        source = through_identity(output.inner)
        if source is not None and source in given.places:
            given.results.append((output.outer, stacks.ordered(stacks.full(source), output.reverse)))
    outputs = [output for output in loop.scan_outputs if output.outer not in {old for old, _ in given.results}]

    def edit() -> list[ir.Node]:
        stacks.build.insert_before(loop.node)
        for node, place in rest.choices:
            node.replace_input_with(place, rest.after[0])
        for old, new in given.results:
            if old is not None:
                replace_value(old, new, ctx.names)
        if not rest.states and not outputs:
            remove_nodes([loop.node])
            return []
        scans, stand_ins = list(loop.scan_inputs), dict[ir.Value, ir.Value]()
        for value in given.places:
            inner = ir.Value(name=ctx.names.fresh(f"{value.name}_in"), type=value.type, shape=value.shape)
            stand_ins[value] = inner
            scans.append(ScanInput(stacks.get(value).value, inner, 0, stacks.backwards))
            for node, index in value.uses():
                node.replace_input_with(index, inner)
        states = [replace(state, next=stand_ins.get(state.next, state.next)) for state in rest.states]
        loop.body.outputs[:] = [*(state.next for state in states), *(output.inner for output in outputs)]
        remove_nodes(unread_nodes(loop.body))
        node = rebuild(loop, ctx.names, states=states, scan_inputs=scans, scan_outputs=outputs)
        give_own_nodes(loop.body, ctx.names)
        return [node]

    rows = "" if mask is None else ", over the steps that each row runs"
    where = ", which runs on onnxruntime's CPU as the loop would" if falls_back else ""
    what = f"replaced the recurrence by a native {cell.op_type} of {cell.size} units{rows}{where}"
    return Patch(what, edit, made=Made(native=cell.op_type, on_cpu=falls_back))


RULE = Rule("recurrent-cell", "recurrence", "loop", check, recognises=True)
