"""One row of an opset-8 Scan, as a detached Scan of opset 9 or later over the steps of that row.

    Scan-8(lens, h0, xs) body    ->    Scan(h0_row, live_row, xs_row) masked body     for each row

Without lengths nothing is masked, and an input scanned backwards still is. With lengths an input scanned backwards starts at the
end of its row: its real steps are put in opposite order outside, and it is then scanned forwards. Outputs of an opset-8 Scan stay
in the order in which the steps were run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.builder import Builder
from rewrites.context import Context
from rewrites.loops import ScanInput, ScanOutput, ScanView, State, make_scan
from rewrites.may_fail import may_fail_on_other_numbers
from rewrites.migration.scan_8.lengths import Lengths, reversed_rows, sizes_of
from rewrites.migration.scan_8.masked_body import guard_states, mask_outputs, mask_states
from rewrites.normal_form.own_outputs import give_own_nodes
from rewrites.spelling import slice_axis, unsqueeze, where
from rewrites.values import dim_of, rank_of

__all__ = ["Row", "make_row"]


@dataclass(frozen=True)
class Row:
    """``node`` reads ``inputs``; ``stacks`` hold each of those for all rows, along axis 0.

    ``results`` pairs the results of the opset-8 node with those of ``node``, which may have more.
    """

    node: ir.Node
    inputs: tuple[ir.Value, ...]
    stacks: tuple[ir.Value, ...]
    results: tuple[tuple[ir.Value, ir.Value], ...]


def make_row(loop: ScanView, lengths: Lengths | None, head: Builder, ctx: Context) -> Row:
    """Take the body out of ``loop``'s node and put a Scan of one row around it; what is done for all rows goes to ``head``."""
    body, states, outputs = loop.body, list(loop.states), list(loop.scan_outputs)
    scans, carried = list(loop.scan_inputs), list[State]()
    if lengths is not None:
        live = ir.Value(name=ctx.names.fresh("live"), type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]))
        guarded = may_fail_on_other_numbers(body, body.inputs) is not None
        scans = [_in_order(scan, lengths, loop, guarded, head) for scan in scans]
        scans.append(ScanInput(lengths.live, live))
        carried = guard_states(body, states, live, ctx) if guarded else []
        outputs = mask_outputs(body, outputs, live, ctx)
        states = mask_states(body, states, live, ctx)
    del loop.node.attributes["body"]
    everything = [*states, *carried]
    stacks = [*(state.initial for state in everything), *(scan.outer for scan in scans)]
    steps = dim_of(loop.scan_inputs[0].outer, 1)
    row_states = [State(_row_of(state.initial, state.inner, [], ctx), state.inner, state.next, None) for state in everything]
    row_scans = [ScanInput(_row_of(scan.outer, scan.inner, [steps], ctx), scan.inner, 0, scan.reverse) for scan in scans]
    row_outputs = [ScanOutput(output.inner, None) for output in outputs]
    node = make_scan(ctx.names, body, row_states, row_scans, row_outputs, loop.node.name or "Scan")
    give_own_nodes(body, ctx.names)
    for value, output in zip(node.outputs[len(everything) :], outputs, strict=True):
        value.shape = None if output.inner.shape is None else ir.Shape([steps, *output.inner.shape.dims])
    made = [*node.outputs[: len(states)], *node.outputs[len(everything) :]]
    inputs = [*(state.initial for state in row_states), *(scan.outer for scan in row_scans)]
    return Row(node, tuple(inputs), tuple(stacks), tuple(zip(loop.node.outputs, made, strict=True)))


def _row_of(stack: ir.Value, inner: ir.Value, steps: Sequence[int | str | None], ctx: Context) -> ir.Value:
    shape = None if inner.shape is None else ir.Shape([*steps, *inner.shape.dims])
    return ir.Value(name=ctx.names.fresh(f"{stack.name}_row"), type=inner.type or stack.type, shape=shape)


def _in_order(scan: ScanInput, lengths: Lengths, loop: ScanView, guarded: bool, head: Builder) -> ScanInput:
    """Give ``scan`` forwards, and where ``guarded`` with the first step's slice in all steps that are not real."""
    x = scan.outer
    if scan.reverse:
        x = reversed_rows(head, x, lengths, *sizes_of(loop, head))
    if guarded:
        rank = rank_of(scan.inner)
        inner_axes = range(2, 2 + (rank or 0))
        x = where(head, unsqueeze(head, lengths.live, inner_axes), x, slice_axis(head, x, 1, 0, 1))
    return ScanInput(x, scan.inner, 1, False)
