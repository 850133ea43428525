"""Makes a loop of its own of part of a body, from copies of the nodes."""

from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from rewrites.analysis.dependence import reads
from rewrites.graph.context import Context
from rewrites.graph.marks import carry
from rewrites.graph.walk import all_nodes
from rewrites.loops import ScanInput, ScanOutput, ScanView, State, make_scan
from rewrites.loops.own_results import give_own_nodes

__all__ = ["needed_for", "separate"]


def needed_for(values: Sequence[ir.Value], nodes: Sequence[ir.Node]) -> list[ir.Node]:
    """Return those of ``nodes``, producers before users, that ``values`` are made by."""
    wanted, found = set(values), []
    for node in reversed(nodes):
        if any(value in wanted for value in node.outputs):
            found.append(node)
            wanted.update(reads(node))
    return found[::-1]


def separate(
    loop: ScanView,
    nodes: Sequence[ir.Node],
    states: Sequence[State],
    carried: Mapping[ir.Value, ScanInput],
    outputs: Sequence[ScanOutput],
    ctx: Context,
    *,
    name: Callable[[ir.Value], str],
) -> ir.Node:
    """Return a detached Scan of copies of ``nodes`` for ``states`` and ``outputs`` of ``loop``, which stays as it is.

    ``carried``: what the nodes read of the rest of the body, each with the scan input that it becomes; the loop's own scan inputs
    are read where they are needed, and one at least. ``name``: gives the copy of a value its name.
    """
    copies: dict[ir.Value, ir.Value] = {}

    def copy(value: ir.Value) -> ir.Value:
        copies[value] = ir.Value(name=name(value), type=value.type, shape=value.shape)
        return copies[value]

    results = [*(state.next for state in states), *(output.inner for output in outputs)]
    read = {value for node in nodes for value in reads(node)} | set(results)
    scans = [scan for scan in loop.scan_inputs if scan.inner in read]
    if not scans and not carried:
        scans = [loop.scan_inputs[0]]
    inners = [copy(state.inner) for state in states]
    entering = [ScanInput(scan.outer, copy(scan.inner), scan.axis, scan.reverse) for scan in scans]
    entering += [ScanInput(scan.outer, copy(value), scan.axis, scan.reverse) for value, scan in carried.items()]
    body = ir.Graph([], [], nodes=[_copied(node, copies, copy) for node in nodes], name=ctx.names.fresh("states"))
    made = make_scan(
        ctx.names,
        body,
        [
            State(state.initial, inner, copies.get(state.next, state.next), None)
            for state, inner in zip(states, inners, strict=True)
        ],
        entering,
        [ScanOutput(copies.get(output.inner, output.inner), None, output.axis, output.reverse) for output in outputs],
        loop.node.name or "scan",
    )
    give_own_nodes(body, ctx.names)
    for result, value in zip(results, body.outputs, strict=True):
        value.type, value.shape = result.type, result.shape
    return made


def _copied(node: ir.Node, copies: Mapping[ir.Value, ir.Value], copy: Callable[[ir.Value], ir.Value]) -> ir.Node:
    attributes = []
    for attribute in node.attributes.values():
        graphs = [] if attribute.is_ref() else _graphs(attribute)
        for graph in graphs:
            for inner in all_nodes(graph):
                for index, value in enumerate(inner.inputs):
                    if value is not None and value in copies:
                        inner.replace_input_with(index, copies[value])
        if graphs and attribute.type == ir.AttributeType.GRAPH:
            attributes.append(ir.AttrGraph(attribute.name, graphs[0]))
        else:
            attributes.append(ir.AttrGraphs(attribute.name, graphs) if graphs else attribute)
    operands = [None if value is None else copies.get(value, value) for value in node.inputs]
    outputs = [copy(value) for value in node.outputs]
    made = ir.Node(
        node.domain,
        node.op_type,
        operands,
        attributes,
        overload=node.overload,
        outputs=outputs,
        name=node.name,
        version=node.version,
        doc_string=node.doc_string,
        metadata_props=dict(node.metadata_props),
    )
    carry(node, made)
    return made


def _graphs(attribute: ir.Attr) -> list[ir.Graph]:
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph().clone(allow_outer_scope_values=True)]
    if attribute.type == ir.AttributeType.GRAPHS:
        return [graph.clone(allow_outer_scope_values=True) for graph in attribute.as_graphs()]
    return []
