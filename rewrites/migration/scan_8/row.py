"""Writes a Scan of opset 9 or later over the steps of one row of an opset-8 Scan.

    Scan-8(lens, h0, xs) body(h, x) => (h2, y)
    ->    for each row: Scan(h0_row, live_row, xs_row) body(h, live, x) => (Where(live, h2, h), y)

The new Scan belongs to no graph yet. Like an opset-8 Scan, it stacks outputs in the order in which the steps run. If the rows have
no lengths, it needs no mask, and its inputs keep their directions. Otherwise:

* States keep their values after the end of a row. The later steps run on padding, and their results are dropped. If there is only
  one row and the Scan may end before step T (``Lengths.steps_to_run``), it stops at the end of this row and needs no mask.
* An opset-8 Scan that scans an input backwards starts at the end of each row. So the real steps of each row are reversed outside
  the new Scan, which scans them forwards.
* If the body may fail on padding, padding steps read the states and inputs of the row's first step instead, because that step did
  not fail. For example, the body then reads ``Where(live, h, h0)`` instead of ``h``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from rewrites.analysis.dependence import varying_values
from rewrites.analysis.speculation import node_failing_on_elements
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import with_axes, without_axis
from rewrites.graph.values import const_scalar, dim_of, rank_of, through_identity
from rewrites.loops import ScanInput, ScanOutput, ScanView, State, make_scan
from rewrites.loops.own_results import give_own_nodes
from rewrites.migration.scan_8.lengths import Lengths, ScanSizes, cut_to_longest_row, reverse_real_steps, with_unit_axes
from rewrites.ops.versions import slice_axis, unsqueeze, where

__all__ = ["Row", "make_row"]


@dataclass(frozen=True)
class Row:
    """A Scan for one row, and the values to run it for all rows.

    Args:
        node: The Scan. It belongs to no graph yet.
        inputs: The inputs of ``node``.
        stacks: For each of ``inputs``, the tensor that holds its values for all rows along axis 0.
        results: The results of ``node`` that the opset-8 Scan also has.
    """

    node: ir.Node
    inputs: tuple[ir.Value, ...]
    stacks: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]


def make_row(loop: ScanView, sizes: ScanSizes, lengths: Lengths | None, head: Builder, ctx: Context) -> Row:
    """Move the body of ``loop`` into a new Scan for one row, and return this Scan as a Row.

    ``head`` collects the nodes that come before the new Scan and compute its inputs for all rows.
    """
    body, states, scans, first_states = loop.body, list(loop.states), list(loop.scan_inputs), list[State]()
    outputs = [output.inner for output in loop.scan_outputs]
    for state in states:
        _declare_rank(state)
    if lengths is not None:
        masked = const_scalar(sizes.rows) != 1 or lengths.steps_to_run is None
        padding_reads_first_step = masked and node_failing_on_elements(body, body.inputs) is not None
        scans = [_forward_scan_input(scan, sizes, lengths, padding_reads_first_step, head) for scan in scans]
        if masked:
            live = {rank: _live_input(rank, ctx) for rank in sorted({rank_of(state.inner) or 0 for state in states})}
            flags = cut_to_longest_row(head, lengths.live, lengths)
            scans += [ScanInput(unsqueeze(head, flags, range(2, 2 + rank)), value) for rank, value in live.items()]
            first_states = _feed_first_step(body, states, live, ctx) if padding_reads_first_step else []
            masked_states = _mask_states(body, states, live, ctx)
            outputs = _return_masked_states(outputs, states, masked_states, body)
            states = masked_states
    del loop.node.attributes["body"]
    all_states = [*states, *first_states]
    stacks = [*(state.initial for state in all_states), *(scan.outer for scan in scans)]
    steps = dim_of(loop.scan_inputs[0].outer, 1) if lengths is None or lengths.steps_to_run is None else None
    row_states = [State(_one_row_value(state.initial, state.inner, [], ctx), state.inner, state.next, None) for state in all_states]
    row_scans = [ScanInput(_one_row_value(scan.outer, scan.inner, [steps], ctx), scan.inner, 0, scan.reverse) for scan in scans]
    row_outputs = [ScanOutput(output, None) for output in outputs]
    node = make_scan(ctx.names, body, row_states, row_scans, row_outputs, loop.node.name or "Scan")
    give_own_nodes(body, ctx.names)
    for value, output in zip(node.outputs[len(all_states) :], loop.scan_outputs, strict=True):
        value.shape = with_axes(output.inner.shape, 0, steps)
    results = [*node.outputs[: len(states)], *node.outputs[len(all_states) :]]
    inputs = [*(state.initial for state in row_states), *(scan.outer for scan in row_scans)]
    return Row(node, tuple(inputs), tuple(stacks), tuple(results))


def _declare_rank(state: State) -> None:
    """Declare the rank of ``state`` in the body if the rank is known, because onnxruntime requires it."""
    shapes = (state.inner.shape, state.next.shape, without_axis(state.initial.shape, 0))
    rank = next((len(shape) for shape in shapes if shape is not None), None)
    for value in (state.inner, state.next):
        if value.shape is None and rank is not None:
            value.shape = ir.Shape([None] * rank)


def _live_input(rank: int, ctx: Context) -> ir.Value:
    """Return a new body input: a mask that is True in real steps and False in padding steps.

    Its shape is [1] * ``rank``, so that it broadcasts to states of this rank.
    """
    return ir.Value(name=ctx.names.fresh("live"), type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([1] * rank))


def _one_row_value(stack: ir.Value, inner: ir.Value, steps: Sequence[int | str | None], ctx: Context) -> ir.Value:
    shape = with_axes(inner.shape, 0, *steps)
    return ir.Value(name=ctx.names.fresh(f"{stack.name}_row"), type=inner.type or stack.type, shape=shape)


def _forward_scan_input(
    scan: ScanInput, sizes: ScanSizes, lengths: Lengths, padding_reads_first_step: bool, head: Builder
) -> ScanInput:
    """Return a scan input that reads the steps of ``scan`` forwards, up to the end of the longest row.

    ``padding_reads_first_step``: True if padding steps read the row's first step instead of their own, because the body may fail
    on padding.
    """
    x = scan.outer
    if scan.reverse:
        x = reverse_real_steps(head, x, lengths, sizes)
        x.shape = x.shape or scan.outer.shape
    if padding_reads_first_step:
        x = where(head, with_unit_axes(head, lengths.live, 2, x, rank_of(scan.inner)), x, slice_axis(head, x, 1, 0, 1))
    return ScanInput(cut_to_longest_row(head, x, lengths), scan.inner, 1, False)


def _mask_states(body: ir.Graph, states: Sequence[State], live: Mapping[int, ir.Value], ctx: Context) -> list[State]:
    """Let ``states`` keep their values in padding steps, and return the new states.

    ``live``: maps the rank of a state to a mask of this rank, which is True in real steps.
    """
    build = ctx.builder()
    masked = []
    for state in states:
        next_value = where(build, live[rank_of(state.inner) or 0], state.next, state.inner)
        next_value.type = next_value.type or state.next.type or state.inner.type
        next_value.shape = next_value.shape or state.next.shape or state.inner.shape
        masked.append(replace(state, next=next_value))
    body.extend(build.nodes)
    return masked


def _return_masked_states(
    outputs: Sequence[ir.Value], states: Sequence[State], masked: Sequence[State], body: ir.Graph
) -> list[ir.Value]:
    """Return ``outputs`` with the next value of each state replaced by that of the masked state.

    In real steps, a masked state equals the state. In padding steps, it differs, but the outputs of padding steps are dropped. So
    the results of the Scan stay the same. The replacement helps later rules: a loop that returns only its states is more often
    recognised as a native cell.

    An output stays unchanged in these two cases:

    * The body has no matrix product. Then the loop is no cell, and returning a state would cost an Identity in each step.
    * The next value of the state depends on no state, so it can be computed for all steps at once.

    Args:
        outputs: The values that the body stacks.
        states: The states.
        masked: The masked states that replace ``states``, in the same order.
        body: The body.
    """
    if not any(node.op_type in ("MatMul", "Gemm") for node in body):
        return list(outputs)
    varying = varying_values(body, [state.inner for state in states])
    chosen = {through_identity(old.next): new.next for old, new in zip(states, masked, strict=True) if old.next in varying}
    return [chosen.get(through_identity(output), output) for output in outputs]


def _feed_first_step(body: ir.Graph, states: Sequence[State], live: Mapping[int, ir.Value], ctx: Context) -> list[State]:
    """Let padding steps read the initial values of ``states`` instead of the values before the step.

    ``live``: maps the rank of a state to a mask of this rank, which is True in real steps. Return the additional states that the
    body needs: they hold the initial values in all steps.
    """
    head, tail = ctx.builder(), ctx.builder()
    carried = []
    first = next(iter(body), None)
    for state in states:
        users = list(state.inner.uses())
        initial = ir.Value(name=ctx.names.fresh(f"{state.inner.name}_first"), type=state.inner.type, shape=state.inner.shape)
        chosen = where(head, live[rank_of(state.inner) or 0], state.inner, initial)
        for node, index in users:
            node.replace_input_with(index, chosen)
        carried.append(State(state.initial, initial, tail.op("Identity", initial), None))
    if first is None:
        body.extend(head.nodes)
    else:
        head.insert_before(first)
    body.extend(tail.nodes)
    return carried
