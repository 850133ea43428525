"""A Loop that is a Scan in disguise becomes one.

    Loop(M, true, h0) body(i, c, h) => (c, f(h, Gather(X, i)))    ->    Scan(h0, X) body(h, x) => f(h, x)

Conditions: the trip count M is a constant of 1 or more (a Loop may have no step, a Scan may not), the condition never stops the
loop, states are tensors whose shape provably stays the same, and the rank of each result is known. ``Gather(X, i)`` along axis 0
of a value from outside becomes a scan input; where the counter is read otherwise it becomes a scan input over 0..M-1. A Gather of
rows of strings stays a Gather: onnxruntime copies the first string of each row only, and a scan input would bring all.
"""

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from rewrites.builder import Builder
from rewrites.context import Context
from rewrites.loops import Loop, LoopView, ScanInput, ScanOutput, ScanView
from rewrites.loops.rebuild import make_scan, stand_in_for
from rewrites.moving import remove_nodes
from rewrites.normal_form.own_outputs import give_own_nodes
from rewrites.normal_form.steady_shapes import unsettled_shapes
from rewrites.replace import replace_value
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch
from rewrites.spelling import axis_of, count_up, gather, slice_axis, unsqueeze
from rewrites.values import dim_of, rank_of

__all__ = ["NAME", "check"]

NAME = "loop-to-scan"


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
    steps = loop.steps
    if not isinstance(steps, int):
        return NotApplicable("LOOP-TRIP-COUNT", "the trip count is not a constant, and may be 0, where a Scan fails on onnxruntime")
    if steps < 1:
        return NotApplicable("LOOP-EMPTY", f"the trip count is {steps}")
    values = [*loop.body.inputs, *loop.body.outputs]
    if any(not isinstance(value.type, ir.TensorType | None) for value in values):
        return NotApplicable("LOOP-SEQUENCE", "a state or result is a sequence or optional, which a Scan does not carry")
    reads = [node for node, index in loop.iteration.uses() if _reads_by_counter(node, index, loop)]
    for node in reads:
        length = dim_of(_source(node), 0)
        if isinstance(length, int) and length < steps:
            return NotApplicable("LOOP-OUT-OF-RANGE", f"'{_source(node).name}' has {length} rows, but is read at 0..{steps - 1}")
    unsettled = unsettled_shapes(loop, ctx)
    if unsettled is not None:
        return unsettled

    def edit() -> list[ir.Node]:
        build = ctx.builder()
        body = loop.body
        scans = [ScanInput(_rows(build, _source(node), steps), _body_input(node.outputs[0], ctx)) for node in reads]
        body.outputs[:] = body.outputs[1:]
        body.inputs[:2] = []
        for node, scan in zip(reads, scans, strict=True):
            replace_value(node.outputs[0], scan.inner, ctx.names)
        remove_nodes(reads)
        flag = np.ones((1,) if rank_of(loop.condition_in) == 1 else (), np.bool_)
        replace_value(loop.condition_in, ctx.constants.value(flag), ctx.names)
        if not scans or loop.iteration.uses() or loop.iteration.is_graph_output():
            counts = count_up(build, build.const([steps]))
            single = rank_of(loop.iteration) == 1
            loop.iteration.type, loop.iteration.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([1] if single else [])
            scans.append(ScanInput(unsqueeze(build, counts, [1]) if single else counts, loop.iteration))
        build.insert_before(loop.node)
        # what the body returns now: a row or the condition returned as it is has become a copy
        states = [replace(state, next=value) for state, value in zip(loop.states, body.outputs, strict=False)]
        outputs = [ScanOutput(value, None) for value in body.outputs[len(states) :]]
        node = make_scan(ctx.names, body, states, scans, outputs, loop.node.name or "scan")
        give_own_nodes(body, ctx.names)
        del loop.node.attributes["body"]
        stand_in_for(loop.node, node, list(zip(loop.node.outputs, node.outputs, strict=True)), ctx.names)
        return [node]

    return Patch(f"made the loop of {steps} steps a Scan", edit)


def _reads_by_counter(node: ir.Node, index: int, loop: LoopView) -> bool:
    if node.op_type != "Gather" or node.domain != "" or index != 1 or node.graph is not loop.body:
        return False
    source = node.inputs[0]
    if source is None or source.graph is loop.body or source.shape is None or axis_of(node, 0) != 0:
        return False
    return rank_of(loop.iteration) in (0, None) and (source.dtype != ir.DataType.STRING or len(source.shape) == 1)


def _source(node: ir.Node) -> ir.Value:
    source = node.inputs[0]
    assert source is not None
    return source


def _rows(build: Builder, source: ir.Value, steps: int) -> ir.Value:
    """Give rows 0..steps-1 of ``source``; a Gather fails on too few rows just as the loop would."""
    length = dim_of(source, 0)
    if isinstance(length, int):
        return source if length == steps else slice_axis(build, source, 0, 0, steps)
    return gather(build, source, count_up(build, build.const([steps])), 0)


def _body_input(like: ir.Value, ctx: Context) -> ir.Value:
    return ir.Value(name=ctx.names.fresh(f"{like.name}_in"), type=like.type, shape=like.shape)
