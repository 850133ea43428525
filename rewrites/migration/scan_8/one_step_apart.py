"""Converts an opset-8 Scan with a single step, if the step may change the shape of a state.

    Scan-8(lens, h0, xs) body    ->    If each row has exactly one step: Scan(h0, the first slices of xs) body    over the rows
                                       else:                             Scan-8(lens, h0, xs) body

An If separates this case from the case of several steps. onnxruntime accepts a step that changes the shape of a state only in an
opset-8 Scan with a single step. In a Scan of a later opset, onnxruntime refuses even a single such step.

The usual conversion (see ``row.py``) cannot be used either. If rows have different lengths, it adds a mask that selects between the
state before a step and the state after the step. Both states must then have the same shape.

Works around ORT-SCAN-CHANGING-STATE.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.graph.branches import write_if
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.marks import OVER_ROWS, hand_on
from rewrites.graph.replace import remove_nodes, take_over
from rewrites.graph.values import const_array, dim_of, rank_of
from rewrites.graph.walk import inner_graphs
from rewrites.loops import ScanInput, ScanOutput, ScanView, loops_in, make_scan
from rewrites.loops.own_results import give_own_nodes
from rewrites.migration.scan_8.lengths import Lengths, ScanSizes, padded_to_all_steps
from rewrites.ops.versions import count_up, reduce, reshape, slice_axis, squeeze, unsqueeze

__all__ = ["may_be_one_step", "split_off_one_step"]


def may_be_one_step(loop: ScanView) -> bool:
    """Return True if it is possible that each row of the Scan has exactly one step."""
    lengths = const_array(loop.sequence_lens)
    steps = next((dim for scan in loop.scan_inputs if isinstance(dim := dim_of(scan.outer, 1), int)), None)
    return not ((lengths is not None and (lengths > 1).any()) or (loop.sequence_lens is None and steps not in (None, 1)))


def split_off_one_step(loop: ScanView, ctx: Context) -> ir.Node:
    """Replace the opset-8 Scan ``loop`` by an If: one branch is for a single step, one for several steps.

    Return the Scan in the branch for several steps. It is still an opset-8 Scan.
    """
    node = loop.node
    head, then, otherwise = ctx.builder(), ctx.builder(), ctx.builder()
    for state in loop.states:
        if state.final is not None:
            state.final.shape = None
    body = node.attributes["body"].as_graph()
    results = _write_one_step_scan(loop, _copy_with_new_names(body, ctx), then, ctx)
    del node.attributes["body"]
    several_steps = _copy_with_body(node, body, otherwise)
    hand_on(node, *loops_in([*then.nodes, several_steps]))
    for k, pair in enumerate(zip(results, several_steps.outputs, strict=True)):
        rank = rank_of(body.outputs[k])
        for value in pair:
            value.shape = None if rank is None else ir.Shape([None] * (rank + (1 if k < len(loop.states) else 2)))
    branches = (then, results), (otherwise, list(several_steps.outputs))
    outer_results = write_if(head, _write_condition(loop, head), *branches, node.name or "Scan", unlike=True)
    head.insert_before(node)
    for old, new in zip(node.outputs, outer_results, strict=True):
        new.type, new.shape = old.type, None
        take_over(old, new, ctx.names)
    remove_nodes([node])
    return several_steps


def _write_one_step_scan(loop: ScanView, body: ir.Graph, b: Builder, ctx: Context) -> list[ir.Value]:
    """Write a Scan over the rows, in which ``body`` computes the single step of each row.

    Return its results, reshaped to the shapes of the results of ``loop``.
    """
    outer = [state.initial for state in loop.states]
    outer += [squeeze(b, slice_axis(b, scan.outer, 1, 0, 1), [1]) for scan in loop.scan_inputs]
    outputs = list(body.outputs)
    scans = [ScanInput(value, inner) for value, inner in zip(outer, body.inputs, strict=True)]
    node = make_scan(ctx.names, body, [], scans, [ScanOutput(value, None) for value in outputs], loop.node.name or "Scan")
    OVER_ROWS.put(node, True)
    give_own_nodes(body, ctx.names)
    b.nodes.append(node)
    time = count_up(b, ScanSizes.of(loop, b).steps)
    live = unsqueeze(b, b.op("Less", time, b.const(1)), [0])
    padding = Lengths(live, live, time, b.const([1]))
    results = list(node.outputs[: len(loop.states)])
    for value, output in zip(node.outputs[len(loop.states) :], loop.scan_outputs, strict=True):
        stack = unsqueeze(b, value, [1])
        kind = output.inner.dtype or (None if output.outer is None else output.outer.dtype)
        results.append(
            stack if loop.sequence_lens is None or kind is None else padded_to_all_steps(b, stack, padding, output.inner, kind)
        )
    return results


def _copy_with_body(node: ir.Node, body: ir.Graph, b: Builder) -> ir.Node:
    attributes: Sequence[ir.Attr] = [*node.attributes.values(), ir.AttrGraph("body", body)]
    outputs = [ir.Value(name=b.names.fresh(value.name or "scan"), type=value.type) for value in node.outputs]
    copy = ir.Node("", node.op_type, list(node.inputs), attributes, outputs=outputs, name=node.name)
    copy.doc_string = node.doc_string
    copy.metadata_props.update(node.metadata_props)
    b.nodes.append(copy)
    return copy


def _copy_with_new_names(body: ir.Graph, ctx: Context) -> ir.Graph:
    copy = body.clone(allow_outer_scope_values=True)
    for graph in (copy, *inner_graphs(copy)):
        for value in [*graph.inputs, *(value for node in graph for value in node.outputs)]:
            value.name = ctx.names.fresh(value.name or "value")
        for node in graph:
            node.name = ctx.names.fresh(node.name or f"node_{node.op_type}")
    return copy


def _write_condition(loop: ScanView, b: Builder) -> ir.Value:
    if loop.sequence_lens is None:
        return b.op("Equal", ScanSizes.of(loop, b).steps, b.const([1]))
    lengths = reshape(b, loop.sequence_lens, [-1])
    longest, shortest = (reduce(b, kind, lengths, [0], keepdims=True) for kind in ("ReduceMax", "ReduceMin"))
    return b.op("And", b.op("Less", longest, b.const([2])), b.op("Less", b.const([0]), shortest))
