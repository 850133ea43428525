"""Copies part of a loop's body into a separate loop, either to insert the copy or to try rules on it.

A trial does not change the model: the copy is in no graph of the model. After the trial, the copy and the nodes that rules built
for it are discarded.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import onnx_ir as ir

from rewrites.analysis.dependence import nodes_computing, reads
from rewrites.fission.state_cut import StateCut, stack_of
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import with_axes, without_names
from rewrites.graph.marks import carry
from rewrites.graph.replace import remove_nodes
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import ScanInput, ScanOutput, ScanView, State, make_scan
from rewrites.loops.own_results import give_own_nodes

__all__ = ["copy_to_new_loop", "copy_with_states", "discarding_context", "in_trial_graph", "trial_loop"]


@dataclass
class _RecordingContext(Context):
    """A context that records its builders, so that their nodes can be discarded."""

    builders: list[Builder] = field(default_factory=list)

    def builder(self) -> Builder:
        self.builders.append(super().builder())
        return self.builders[-1]


def copy_to_new_loop(
    loop: ScanView,
    nodes: Sequence[ir.Node],
    states: Sequence[State],
    carried: Mapping[ir.Value, ScanInput],
    outputs: Sequence[ScanOutput],
    ctx: Context,
    *,
    name: Callable[[ir.Value], str],
) -> ir.Node:
    """Return a detached Scan of copies of ``nodes``; ``loop`` stays unchanged.

    Args:
        loop: The loop whose body holds the nodes.
        nodes: The nodes to copy.
        states: The states of the new loop.
        carried: Maps values that the nodes read from the rest of the body to scan inputs that provide these values.
        outputs: The scan outputs of the new loop.
        ctx: The context of the rule.
        name: Returns the name for the copy of a value.

    The new loop also has the scan inputs of ``loop`` that the nodes read. If it would have no scan input at all, it gets the first
    scan input of ``loop``.
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
    body = ir.Graph([], [], nodes=[_copy_node(node, copies, copy) for node in nodes], name=ctx.names.fresh("states"))
    pairs = zip(states, inners, strict=True)
    new_states = [State(state.initial, inner, copies.get(state.next, state.next), None) for state, inner in pairs]
    new_outputs = [ScanOutput(copies.get(output.inner, output.inner), None, output.axis, output.reverse) for output in outputs]
    scan = make_scan(ctx.names, body, new_states, entering, new_outputs, loop.node.name or "scan")
    give_own_nodes(body, ctx.names)
    for result, value in zip(results, body.outputs, strict=True):
        value.type, value.shape = result.type, result.shape
    return scan


def _copy_node(node: ir.Node, copies: Mapping[ir.Value, ir.Value], copy: Callable[[ir.Value], ir.Value]) -> ir.Node:
    """Return a copy of ``node`` that reads ``copies`` of values. ``copy`` makes a copy of a result."""
    attributes = []
    for attribute in node.attributes.values():
        graphs = [] if attribute.is_ref() else _cloned_graphs(attribute)
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
    new = ir.Node(
        node.domain,
        node.op_type,
        operands,
        attributes,
        overload=node.overload,
        outputs=[copy(value) for value in node.outputs],
        name=node.name,
        version=node.version,
        doc_string=node.doc_string,
        metadata_props=dict(node.metadata_props),
    )
    carry(node, new)
    return new


def _cloned_graphs(attribute: ir.Attr) -> list[ir.Graph]:
    """Return clones of the graphs of ``attribute``; an empty list if it has none."""
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph().clone(allow_outer_scope_values=True)]
    if attribute.type == ir.AttributeType.GRAPHS:
        return [graph.clone(allow_outer_scope_values=True) for graph in attribute.as_graphs()]
    return []


def copy_with_states(loop: ScanView, states: Sequence[State], ctx: Context) -> ir.Node:
    """Return a detached copy of ``loop`` that has ``states`` instead of the states of ``loop``."""

    def name(value: ir.Value) -> str:
        return ctx.names.fresh(value.name or "value")

    node = copy_to_new_loop(loop, list(loop.body), states, {}, loop.scan_outputs, ctx, name=name)
    for output, stack in zip(loop.scan_outputs, node.outputs[len(states) :], strict=True):
        stack.shape = with_axes(without_names(output.inner.shape), 0, ScanView.of(node, ctx.opset).steps)
    return node


@contextmanager
def trial_loop(loop: ScanView, cut: StateCut, states: Sequence[State], ctx: Context) -> Iterator[tuple[ScanView, Context]]:
    """Yield a loop that computes only ``states``, and a context for trying rules on this loop.

    The loop copies the nodes of the second part of ``cut`` that ``states`` need. It returns stacks of those values that other nodes
    of the body read or that ``loop`` returns.
    """
    nodes = nodes_computing(cut.nodes, [state.next for state in states])
    inside = {*nodes, *(inner for node in nodes for graph in node_graphs(node) for inner in all_nodes(graph))}
    returned = {output.inner for output in loop.scan_outputs}
    after = {state.inner: state.next for state in states}
    outputs = [
        ScanOutput(after.get(value, value), None)
        for value in [*after, *(value for node in nodes for value in node.outputs)]
        if value in returned or any(user not in inside for user, _ in value.uses())
    ]
    read = {value for node in nodes for value in reads(node)} | {state.next for state in states}
    carried = {value: ScanInput(stack_of(value, loop, f"{value.name}_stack"), value) for value in cut.carried if value in read}
    with in_trial_graph(
        copy_to_new_loop(loop, nodes, states, carried, outputs, ctx, name=lambda value: value.name or ""), ctx
    ) as alone:
        yield alone


@contextmanager
def in_trial_graph(node: ir.Node, ctx: Context) -> Iterator[tuple[ScanView, Context]]:
    """Put the detached Scan ``node`` into a new graph. Yield its view and a context to try rules on it.

    Afterwards, discard the graph and all nodes that rules built with this context.
    """
    graph = ir.Graph([], [], nodes=[node], name="trial")
    try:
        with discarding_context(ctx) as recorded:
            yield ScanView.of(node, ctx.opset), recorded
    finally:
        del graph.outputs[:]
        remove_nodes(graph)


@contextmanager
def discarding_context(ctx: Context) -> Iterator[Context]:
    """Yield a copy of ``ctx``. Afterwards, discard all nodes that were built with this copy."""
    recorded = _RecordingContext(ctx.model, ctx.options, ctx.evaluate, ctx.names, ctx.constants, ctx.rules)
    try:
        yield recorded
    finally:
        for builder in recorded.builders:
            builder.discard()
