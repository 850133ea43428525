"""A Loop that is a Scan in disguise becomes one.

    Loop(M, true, h0) body(i, c, h) => (c, f(h, Gather(X, i)))    ->    Scan(h0, X) body(h, x) => f(h, x)

Conditions: the trip count M is known before the loop, the condition never stops it, states are tensors whose shape provably stays
the same, and the rank of each result is known. A Loop may have no step and a Scan may not: where M is not provably 1 or more, the
Scan stands in an If, whose other branch gives the initial states and empty results. Rows of values from outside that are read one
after the other, forwards or backwards, become scan inputs; where the number of the step is read otherwise it becomes one too. A
Gather of rows of strings stays a Gather: onnxruntime copies the first string of each row only, and a scan input would bring all.

Works round ORT-SCAN-NO-STEPS and ORT-GATHER-STRINGS.
"""

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import unread_nodes, varying_values
from rewrites.analysis.induction.affine_expression import Affine, at_least
from rewrites.analysis.induction.induction_variables import integers_of, trip_count
from rewrites.analysis.shapes.refine import size_said_by, unsettled_shapes
from rewrites.base.report import PatchOutcome
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import is_vague, with_axes, without_axis
from rewrites.graph.node_inference import put_shapes
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import dim_of, rank_of
from rewrites.loop_form.guard import guarded, zero_step_shapes
from rewrites.loop_form.row_reads import RowRead, as_vector, row_reads
from rewrites.loops import Loop, LoopView, ScanInput, ScanOutput, ScanView
from rewrites.loops.own_results import give_own_nodes
from rewrites.loops.rebuild import make_scan, stand_in_for
from rewrites.ops.versions import count_up, unsqueeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """See whether the loop is a Scan in disguise."""
    if isinstance(loop, ScanView):
        return NOTHING_HERE
    if ctx.opset < 9:
        return NotApplicable("LOOP-OPSET", f"opset {ctx.opset} has only the batched Scan")
    if not loop.never_stops_early:
        return NotApplicable(
            "LOOP-CONDITION", "the condition is computed in the body, so the trip count is not known before the loop"
        )
    steps = trip_count(loop, ctx.opset)
    if steps is None:
        return NotApplicable("LOOP-TRIP-COUNT", "there is no trip count, and the condition never turns false")
    if steps.number is not None and steps.number < 1:
        return NotApplicable("LOOP-EMPTY", f"the trip count is {max(0, steps.number)}")
    values = [*loop.body.inputs, *loop.body.outputs]
    if any(not isinstance(value.type, ir.TensorType | None) for value in values):
        return NotApplicable("LOOP-SEQUENCE", "a state or result is a sequence or optional, which a Scan does not carry")
    reads = row_reads(loop, integers_of(loop, ctx.opset, steps), steps)
    for read in reads:
        if read.missing(steps):
            length, first, count = dim_of(read.source, read.axis), read.first(steps).number or 0, steps.number or 0
            detail = f"'{read.source.name}' has {length} rows, but is read at {first}..{first + count - 1}"
            return NotApplicable("LOOP-OUT-OF-RANGE", detail)
    empty = zero_step_shapes(loop)
    settled = unsettled_shapes(loop, ctx)
    if isinstance(settled, NotApplicable):
        return settled
    sure = at_least(steps, 1)

    def edit() -> list[ir.Node]:
        put_shapes(settled)
        build, body, limit = ctx.builder(), loop.body, _limit(loop)
        count = build.const([steps.number]) if steps.number is not None else as_vector(build, limit)
        scans = [_scan_input(read, read.rows(build, steps, count), ctx) for read in reads]
        body.outputs[:] = body.outputs[1:]
        body.inputs[:2] = []
        inside = ctx.builder()
        for read, scan in zip(reads, scans, strict=True):
            axes = range(read.axis, read.axis + read.ones)
            replace_value(read.node.outputs[0], unsqueeze(inside, scan.inner, list(axes)), ctx.names)
        for node in reversed(inside.nodes):
            body.insert_before(body[0], node)
        remove_nodes(read.node for read in reads)
        places = varying_values(body, [loop.iteration])
        remove_nodes(dead for dead in unread_nodes(body) if any(value in places for value in dead.outputs))
        flag = np.ones((1,) if rank_of(loop.condition_in) == 1 else (), np.bool_)
        replace_value(loop.condition_in, ctx.constants.value(flag), ctx.names)
        if not scans or loop.iteration.uses() or loop.iteration.is_graph_output():
            scans.append(_step_numbers(loop, build, count, steps))
        # what the body returns now: a row or the condition returned as it is has become a copy
        states = [replace(state, next=value) for state, value in zip(loop.states, body.outputs, strict=False)]
        outputs = [ScanOutput(value, None) for value in body.outputs[len(states) :]]
        node = make_scan(ctx.names, body, states, scans, outputs, loop.node.name or "scan")
        for output, value in zip(outputs, node.outputs[len(states) :], strict=True):
            value.shape = with_axes(output.inner.shape, 0, size_said_by(steps))
        give_own_nodes(body, ctx.names)
        del loop.node.attributes["body"]
        if sure:
            build.insert_before(loop.node)
            _keep_sizes(loop, node)
            stand_in_for(loop.node, node, list(zip(loop.node.outputs, node.outputs, strict=True)), ctx.names)
            return [node]
        around, results = guarded(ctx, loop, node, build, limit, empty)
        stand_in_for(loop.node, around, results, ctx.names)
        return [node]

    if sure:
        return Patch(f"made the loop of {steps.number or 'known'} steps a Scan", edit)
    note = "a branch beside the Scan gives what no step at all gives"
    return Patch("made the loop a Scan for one step or more", edit, (note,), PatchOutcome(under_if=True))


def _step_numbers(loop: LoopView, build: Builder, count: ir.Value, steps: Affine) -> ScanInput:
    counts = count_up(build, count)
    if steps.number is not None:
        counts.shape = ir.Shape([steps.number])
    single = rank_of(loop.iteration) == 1
    loop.iteration.type, loop.iteration.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([1] if single else [])
    return ScanInput(unsqueeze(build, counts, [1]) if single else counts, loop.iteration)


def _limit(loop: LoopView) -> ir.Value:
    assert loop.limit is not None
    return loop.limit


def _scan_input(read: RowRead, rows: ir.Value, ctx: Context) -> ScanInput:
    shape = rows.shape if rows.shape is not None else read.source.shape
    row = without_axis(shape, read.axis) or ir.Shape([])
    inner = ir.Value(name=ctx.names.fresh(f"{read.node.outputs[0].name}_in"), type=read.source.type, shape=row)
    return ScanInput(rows, inner, read.axis, read.reverse)


def _keep_sizes(loop: LoopView, node: ir.Node) -> None:
    """Let the loop's inner results, whose shapes the new node has, know all sizes that it has."""
    for old, new in zip(loop.node.outputs, node.outputs, strict=True):
        if new.shape is not None and not old.is_graph_output() and (old.shape is None or is_vague(old.shape)):
            old.shape = new.shape


RULE = Rule("loop-to-scan", "loop_form", "loop", check)
