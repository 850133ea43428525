"""Writes a Scan of opset 9 or later over the steps of one row of an opset-8 Scan.

    Scan-8(lens, h0, xs) body(h, x) => (h2, y)
    ->    for each row: Scan(h0_row, live_row, xs_row) body(h, live, x) => (Where(live, h2, h), y)

The new Scan belongs to no graph yet. Like an opset-8 Scan, it stacks outputs in the order in which the steps run. If the rows have
no lengths, it needs no mask, and its inputs keep their directions. Otherwise:

* States keep their values after the end of a row. The later steps run on padding, and their results are dropped. If there is only
  one row and the Scan may end before step T (``Lengths.most``), it stops at the end of this row and needs no mask.
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
from rewrites.migration.scan_8.lengths import Lengths, ScanSizes, reversed_rows, spread, trimmed
from rewrites.ops.versions import slice_axis, unsqueeze, where

__all__ = ["Row", "make_row"]


@dataclass(frozen=True)
class Row:
    """A Scan for one row, and the values to run it for all rows.

    Args:
        node: The Scan. It belongs to no graph yet.
        inputs: The inputs of ``node``.
        stacks: For each of ``inputs``, the tensor that holds its values for all rows along axis 0.
        results: The results of ``node`` that are also results of the opset-8 Scan.
    """

    node: ir.Node
    inputs: tuple[ir.Value, ...]
    stacks: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]


def make_row(loop: ScanView, sizes: ScanSizes, lengths: Lengths | None, head: Builder, ctx: Context) -> Row:
    """Move the body of ``loop`` into a Scan for one row, and return this Scan.

    ``head`` collects the nodes that prepare the inputs of all rows before the Scan runs.
    """
    body, states, scans, carried = loop.body, list(loop.states), list(loop.scan_inputs), list[State]()
    outputs = [output.inner for output in loop.scan_outputs]
    for state in states:
        _declare_rank(state)
    if lengths is not None:
        masked = const_scalar(sizes.rows) != 1 or lengths.most is None
        fed_first = masked and node_failing_on_elements(body, body.inputs) is not None
        scans = [_in_order(scan, sizes, lengths, fed_first, head) for scan in scans]
        if masked:
            live = {rank: _live_input(rank, ctx) for rank in sorted({rank_of(state.inner) or 0 for state in states})}
            flags = trimmed(head, lengths.live, lengths)
            scans += [ScanInput(unsqueeze(head, flags, range(2, 2 + rank)), value) for rank, value in live.items()]
            carried = _feed_first_step(body, states, live, ctx) if fed_first else []
            masked_states = _mask_states(body, states, live, ctx)
            outputs = _frozen_outputs(outputs, states, masked_states, body)
            states = masked_states
    del loop.node.attributes["body"]
    everything = [*states, *carried]
    stacks = [*(state.initial for state in everything), *(scan.outer for scan in scans)]
    steps = dim_of(loop.scan_inputs[0].outer, 1) if lengths is None or lengths.most is None else None
    row_states = [State(_row_of(state.initial, state.inner, [], ctx), state.inner, state.next, None) for state in everything]
    row_scans = [ScanInput(_row_of(scan.outer, scan.inner, [steps], ctx), scan.inner, 0, scan.reverse) for scan in scans]
    row_outputs = [ScanOutput(output, None) for output in outputs]
    node = make_scan(ctx.names, body, row_states, row_scans, row_outputs, loop.node.name or "Scan")
    give_own_nodes(body, ctx.names)
    for value, output in zip(node.outputs[len(everything) :], loop.scan_outputs, strict=True):
        value.shape = with_axes(output.inner.shape, 0, steps)
    results = [*node.outputs[: len(states)], *node.outputs[len(everything) :]]
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
    """Return a new body input, the mask for states of rank ``rank``. It is True in real steps.

    Its shape is [1] * ``rank``, so it broadcasts to these states.
    """
    return ir.Value(name=ctx.names.fresh("live"), type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([1] * rank))


def _row_of(stack: ir.Value, inner: ir.Value, steps: Sequence[int | str | None], ctx: Context) -> ir.Value:
    shape = with_axes(inner.shape, 0, *steps)
    return ir.Value(name=ctx.names.fresh(f"{stack.name}_row"), type=inner.type or stack.type, shape=shape)


def _in_order(scan: ScanInput, sizes: ScanSizes, lengths: Lengths, fed_first: bool, head: Builder) -> ScanInput:
    """Return a scan input that reads the steps of ``scan`` forwards, up to the end of the longest row.

    ``fed_first``: True if padding steps read the row's first step instead of their own, because the body may fail on padding.
    """
    x = scan.outer
    if scan.reverse:
        x = reversed_rows(head, x, lengths, sizes)
        x.shape = x.shape or scan.outer.shape
    if fed_first:
        x = where(head, spread(head, lengths.live, 2, x, rank_of(scan.inner)), x, slice_axis(head, x, 1, 0, 1))
    return ScanInput(trimmed(head, x, lengths), scan.inner, 1, False)


def _mask_states(body: ir.Graph, states: Sequence[State], live: Mapping[int, ir.Value], ctx: Context) -> list[State]:
    """Keep the values of ``states`` in steps in which ``live`` is False. ``live`` maps a rank to its mask."""
    build = ctx.builder()
    masked = []
    for state in states:
        chosen = where(build, live[rank_of(state.inner) or 0], state.next, state.inner)
        chosen.type = chosen.type or state.next.type or state.inner.type
        chosen.shape = chosen.shape or state.next.shape or state.inner.shape
        masked.append(replace(state, next=chosen))
    body.extend(build.nodes)
    return masked


def _frozen_outputs(
    outputs: Sequence[ir.Value], states: Sequence[State], frozen: Sequence[State], body: ir.Graph
) -> list[ir.Value]:
    """Replace each output that is the next value of a state by the next value of the frozen state.

    A frozen state keeps its value in padding steps. In real steps, it equals the state. The outputs of padding steps are dropped,
    so the results of the Scan stay the same. The replacement helps later rules, because a loop that returns only its states is more
    often recognised as a native cell. Nothing is replaced in a body without a matrix product, because it is no cell, and because a
    state that is also an output needs an Identity in each step. If the next value of a state depends on no state, the output is not
    replaced either, because all its steps can be computed at once.
    """
    if not any(node.op_type in ("MatMul", "Gemm") for node in body):
        return list(outputs)
    varying = varying_values(body, [state.inner for state in states])
    chosen = {through_identity(old.next): new.next for old, new in zip(states, frozen, strict=True) if old.next in varying}
    return [chosen.get(through_identity(output), output) for output in outputs]


def _feed_first_step(body: ir.Graph, states: Sequence[State], live: Mapping[int, ir.Value], ctx: Context) -> list[State]:
    """Let the body read the initial values of ``states`` in steps in which ``live`` is False.

    Return additional states, which carry the initial values through all steps.
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
