"""A Loop that is a Scan in disguise becomes one.

    Loop(M, true, h0) body(i, c, h) => (c, f(h, Gather(X, i)))    ->    Scan(h0, X) body(h, x) => f(h, x)

Conditions: the trip count M is a constant of 1 or more (a Loop may have no step, a Scan may not), the condition never stops the
loop, states are tensors whose shape provably stays the same. ``Gather(X, i)`` along axis 0 of a value from outside becomes a scan
input; where the counter is read otherwise it becomes a scan input over 0..M-1.
"""

import numpy as np
import onnx_ir as ir

from rewrites.builder import Builder
from rewrites.context import Context
from rewrites.inference import infer_node
from rewrites.loops import Loop, LoopView, ScanInput, ScanView
from rewrites.loops.rebuild import make_scan, stand_in_for
from rewrites.moving import node_graphs, remove_nodes
from rewrites.normal_form.own_outputs import give_own_nodes
from rewrites.replace import replace_value
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch
from rewrites.spelling import axis_of
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
    unsettled = _unsettled_state(loop, ctx)
    if unsettled is not None:
        return unsettled

    def edit() -> list[ir.Node]:
        build = ctx.builder()
        body = loop.body
        scans = [ScanInput(_rows(build, _source(node), steps), node.outputs[0]) for node in reads]
        build.insert_before(loop.node)
        stand_ins = [_body_input(scan.inner) for scan in scans]
        flag = np.ones((1,) if rank_of(loop.condition_in) == 1 else (), np.bool_)
        body.outputs[:] = body.outputs[1:]
        body.inputs[:2] = []
        for scan, value in zip(scans, stand_ins, strict=True):
            name = scan.inner.name
            replace_value(scan.inner, value, ctx.names)
            scan.inner.name, value.name = ctx.names.fresh(name or "x"), name
        remove_nodes(reads)
        replace_value(loop.condition_in, ctx.constants.value(flag), ctx.names)
        scans = [ScanInput(scan.outer, value) for scan, value in zip(scans, stand_ins, strict=True)]
        if not scans or loop.iteration.uses() or loop.iteration.is_graph_output():
            counts = np.arange(steps, dtype=np.int64)
            rows = counts.reshape(-1, 1) if rank_of(loop.iteration) == 1 else counts
            if rank_of(loop.iteration) is None:
                loop.iteration.shape = ir.Shape([])
            scans.append(ScanInput(ctx.constants.value(rows), loop.iteration))
        node = make_scan(
            ctx.names,
            body,
            loop.states,
            scans,
            loop.scan_outputs,
            loop.node.name or "scan",
        )
        give_own_nodes(body, ctx.names)
        del loop.node.attributes["body"]
        stand_in_for(loop.node, node, list(zip(loop.node.outputs, node.outputs, strict=True)), ctx.names)
        return [node]

    return Patch(f"made the loop of {steps} steps a Scan", edit)


def _reads_by_counter(node: ir.Node, index: int, loop: LoopView) -> bool:
    if node.op_type != "Gather" or node.domain != "" or index != 1 or node.graph is not loop.body:
        return False
    source = node.inputs[0]
    scalar = rank_of(loop.iteration) in (0, None)
    return source is not None and source.graph is not loop.body and axis_of(node, 0) == 0 and scalar and source.shape is not None


def _source(node: ir.Node) -> ir.Value:
    source = node.inputs[0]
    assert source is not None
    return source


def _rows(build: Builder, source: ir.Value, steps: int) -> ir.Value:
    """Give rows 0..steps-1 of ``source``; a Gather fails on too few rows just as the loop would."""
    if dim_of(source, 0) == steps:
        return source
    return build.op("Gather", source, build.const(list(range(steps))), axis=0)


def _body_input(like: ir.Value) -> ir.Value:
    return ir.Value(name="", type=like.type, shape=like.shape)


def _unsettled_state(loop: LoopView, ctx: Context) -> NotApplicable | None:
    """Check by one inference of the body from the initial shapes that no state changes its shape.

    Each state starts with the shape of its initial value; if the body gives the same shape back, induction gives it for all steps.
    """
    values = [value for node in loop.body for value in node.outputs]
    before = [(value, value.shape) for value in [*loop.body.inputs, *values]]
    for value in values:
        producer = value.producer()
        if producer is not None and not node_graphs(producer):
            value.shape = None
    for state in loop.states:
        state.inner.shape = state.initial.shape
    for node in loop.body:
        infer_node(node, ctx.model.opset_imports, ctx.model.ir_version)
    for state in loop.states:
        given, back = state.initial.shape, state.next.shape
        if given is None or back is None or not _provably_equal(given, back):
            for value, shape in before:
                value.shape = shape
            detail = f"state '{state.inner.name}' starts with the shape {given}, and the body gives {back}"
            return NotApplicable("LOOP-STATE-SHAPE", detail)
    return None


def _provably_equal(one: ir.Shape, other: ir.Shape) -> bool:
    if len(one) != len(other):
        return False
    return all(
        left == right if isinstance(left, int) or isinstance(right, int) else left.value is not None and left.value == right.value
        for left, right in zip(one.dims, other.dims, strict=True)
    )
