"""Replaces an opset-8 Scan by Scans of opset 9 or later.

    Scan-8(lens, h0 [B, H], xs [B, T, D])    ->    Scan(h0 [B, H], live [B, T], xs [B, T, D])  axes 1, body for all rows at once

``row`` writes a Scan for one row. This module then runs that Scan for all rows, in the first of these forms that is possible:

    one row       If there is only one row: Squeeze, the Scan for one row, Unsqueeze.
    batched       A Scan whose body computes all rows at once, as in the example. Each operator of the body needs a batching rule.
    row by row    A Scan over the rows, whose body contains the Scan for one row. onnxruntime runs opset-8 Scans in this way.
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic
from rewrites.base.errors import MigrationError
from rewrites.base.not_applicable import NotApplicable
from rewrites.batching import Call, Operand, batch
from rewrites.batching.alignment import stacked_value
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.marks import OVER_ROWS, ROWS_OF_STEPS, hand_on
from rewrites.graph.replace import remove_nodes, take_over
from rewrites.graph.values import const_scalar
from rewrites.graph.walk import all_nodes
from rewrites.loops import ScanInput, ScanOutput, ScanView, loops_in, make_scan
from rewrites.loops.own_results import give_own_nodes
from rewrites.migration.scan_8.kept_shapes import may_change
from rewrites.migration.scan_8.lengths import ScanSizes, lengths_of, padded_to_all_steps, select_final_state
from rewrites.migration.scan_8.one_step_apart import may_be_one_step, split_off_one_step
from rewrites.migration.scan_8.row import Row, make_row
from rewrites.ops.rnn.recurrent_node import is_recurrent
from rewrites.ops.versions import squeeze, unsqueeze

__all__ = ["LiftedScan", "lift_scan_8"]
_SINCE = 8


@dataclass(frozen=True)
class LiftedScan:
    """Describes the Scan that replaced an opset-8 Scan.

    Args:
        name: The name of the new Scan.
        form: How the new Scan handles rows: ``one row``, ``batched`` or ``row by row``.
        lengths: True if rows may have different lengths.
        reason: For ``row by row``, the reason why the Scan is not batched.
    """

    name: str
    form: str
    lengths: bool
    reason: NotApplicable | None = None


def lift_scan_8(node: ir.Node, ctx: Context) -> LiftedScan:
    """Replace ``node``, an opset-8 Scan whose body is already in the opset of ``ctx``, 9 or later.

    If a step may change the shape of a state, an If replaces ``node``: one branch runs a single step, and the other branch holds a
    Scan for several steps.

    Returns:
        A description of the new Scan. If there is an If, it describes the Scan for several steps.

    Raises:
        MalformedLoop: The Scan violates its definition or always fails. Nothing has changed.
        MigrationError: The Scan cannot be replaced.
    """
    loop = ScanView.of(node, _SINCE)
    if loop.sequence_lens is not None:
        _check_lengths_supported(loop)
    if ctx.options.target.loops and may_be_one_step(loop) and may_change(loop, ctx):
        node = split_off_one_step(loop, ctx)
    return _lift(node, ctx)


def _lift(node: ir.Node, ctx: Context) -> LiftedScan:
    loop = ScanView.of(node, _SINCE)
    head = ctx.builder()
    sizes = ScanSizes.of(loop, head)
    lengths = lengths_of(loop, sizes, head, all_steps=not ctx.options.target.loops)
    single = const_scalar(sizes.rows) == 1
    give_own_nodes(loop.body, ctx.names)
    loop = ScanView.of(node, _SINCE)
    row = make_row(loop, sizes, lengths, head, ctx)
    reason = None
    if single:
        form, results = "one row", _run_one_row(row, head)
    else:
        answer = _batched(row, sizes.rows, head)
        if isinstance(answer, NotApplicable):
            form, reason, results = "row by row", answer, _run_row_by_row(row, head, ctx, node.name or "Scan")
        else:
            form, results = "batched", answer
            remove_nodes([row.node])
    if lengths is not None:
        finals, stacked = results[: len(loop.states)], results[len(loop.states) :]
        if single:
            finals = [select_final_state(head, final, state, lengths) for final, state in zip(finals, loop.states, strict=True)]
        pairs = zip(stacked, loop.scan_outputs, strict=True)
        results = [
            *finals,
            *(padded_to_all_steps(head, y, lengths, output.inner, _output_type(output, node)) for y, output in pairs),
        ]
    main = next(new for new in head.nodes if new.op_type == "Scan")
    if form == "batched":
        for inner in filter(is_recurrent, all_nodes(main.attributes["body"].as_graph())):
            ROWS_OF_STEPS.put(inner, True)  # for an empty batch, the opset-8 Scan failed before its body ran
    name, main.name = node.name, ctx.names.fresh(node.name or "Scan")
    main.doc_string = node.doc_string
    main.metadata_props.update(node.metadata_props)
    hand_on(node, *loops_in(head.nodes))
    head.insert_before(node)
    for old, new in zip(node.outputs, results, strict=True):
        take_over(old, new, ctx.names)
    remove_nodes([node])
    main.name = name
    return LiftedScan(name or (main.outputs[0].name or ""), form, lengths is not None, reason)


def _run_one_row(row: Row, build: Builder) -> list[ir.Value]:
    """Write nodes that run ``row`` for a batch of one row, and return the results.

    The nodes remove the batch axis from the inputs of the Scan, and add it to the results.
    """
    for i, stack in enumerate(row.stacks):
        row.node.replace_input_with(i, squeeze(build, stack, [0]))
    build.nodes.append(row.node)
    return [unsqueeze(build, result, [0]) for result in row.results]


def _batched(row: Row, rows: ir.Value, build: Builder) -> list[ir.Value] | NotApplicable:
    """Write a Scan that computes all rows at once, and return its results.

    If an operator of the body cannot be batched, return the reason. ``rows``: the number of rows.
    """
    operands = tuple(Operand(stack, True, value) for stack, value in zip(row.stacks, row.inputs, strict=True))
    results = batch(Call(row.node, operands, build, rows))
    if isinstance(results, NotApplicable):
        return results
    batched = dict(zip(row.node.outputs, results, strict=True))
    return [stacked_value(build, Operand(batched[result].value, batched[result].batched, result), rows) for result in row.results]


def _run_row_by_row(row: Row, build: Builder, ctx: Context, hint: str) -> list[ir.Value]:
    """Write a Scan over the rows, whose body contains the Scan for one row, and return its results."""
    outputs = [ScanOutput(result, None) for result in row.results]
    scans = [ScanInput(stack, value) for stack, value in zip(row.stacks, row.inputs, strict=True)]
    body = ir.Graph(row.inputs, row.results, nodes=[row.node], name=ctx.names.fresh("row"))
    node = make_scan(ctx.names, body, [], scans, outputs, hint)
    OVER_ROWS.put(node, True)
    build.nodes.append(node)
    return list(node.outputs)


def _check_lengths_supported(loop: ScanView) -> None:
    """Raise MigrationError if ``loop`` cannot be replaced because its rows have lengths.

    There are two such cases:

    * The body draws random numbers. The new Scan also runs padding steps, which would draw additional numbers.
    * The element type of an output is unknown. The new model must write zeros of this type as the results of padding steps.
    """
    label = loop.node.name or loop.node.outputs[0].name
    for output in loop.scan_outputs:
        _output_type(output, loop.node)
    for node in loop.body:
        if node.domain == "" and not is_deterministic(node):
            detail = f"its {node.op_type} '{node.name or node.outputs[0].name}' draws random numbers, and rows have lengths"
            raise MigrationError(f"Scan '{label}' cannot be lifted from opset 8: {detail}.")


def _output_type(output: ScanOutput, node: ir.Node) -> ir.DataType:
    kind = output.inner.dtype or (None if output.outer is None else output.outer.dtype)
    if kind is None:
        label = node.name or node.outputs[0].name
        detail = f"the element type of its output '{output.inner.name}' is not known, but padding needs it"
        raise MigrationError(f"Scan '{label}' cannot be lifted from opset 8: {detail}.")
    return kind
