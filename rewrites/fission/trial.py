"""Tries rules on a loop that does not exist yet, a copy of part of a body, which is taken apart again.

Rules only look, and what they build on the way is detached; here it is forgotten even where they accept. What a patch made there
changes is in a graph of its own, and goes with it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import onnx_ir as ir

from rewrites.analysis.dependence import reads
from rewrites.fission.separate import needed_for, separate
from rewrites.fission.state_cut import StateCut, stack_of
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import ScanInput, ScanOutput, ScanView, State

__all__ = ["discarding", "trial", "tried"]


@dataclass
class _Recorded(Context):
    """A context that remembers its builders."""

    builders: list[Builder] = field(default_factory=list)

    def builder(self) -> Builder:
        self.builders.append(super().builder())
        return self.builders[-1]


@contextmanager
def trial(loop: ScanView, cut: StateCut, states: Sequence[State], ctx: Context) -> Iterator[tuple[ScanView, Context]]:
    """Return a loop of ``states`` alone, out of the second part of ``cut``, and the context to try rules on it with.

    What the rest of the body reads of it is a scan output.
    """
    nodes = needed_for([state.next for state in states], cut.nodes)
    inside = {one for node in nodes for one in (node, *(inner for graph in node_graphs(node) for inner in all_nodes(graph)))}
    returned = {output.inner for output in loop.scan_outputs}
    after = {state.inner: state.next for state in states}
    outputs = [
        ScanOutput(after.get(value, value), None)
        for value in [*after, *(value for node in nodes for value in node.outputs)]
        if value in returned or any(user not in inside for user, _ in value.uses())
    ]
    read = {value for node in nodes for value in reads(node)} | {state.next for state in states}
    carried = {value: ScanInput(stack_of(value, loop, f"{value.name}_stack"), value) for value in cut.carried if value in read}
    with tried(separate(loop, nodes, states, carried, outputs, ctx, name=lambda value: value.name or ""), ctx) as found:
        yield found


@contextmanager
def tried(node: ir.Node, ctx: Context) -> Iterator[tuple[ScanView, Context]]:
    """Return ``node``, a new Scan, as a loop in a graph of its own, and the context to try rules on it with; all goes then."""
    graph = ir.Graph([], [], nodes=[node], name="trial")
    try:
        with discarding(ctx) as recorded:
            yield ScanView.of(node, ctx.opset), recorded
    finally:
        del graph.outputs[:]
        remove_nodes(graph)


@contextmanager
def discarding(ctx: Context) -> Iterator[Context]:
    """Return a copy of ``ctx``, and discard at the end what was built with it."""
    recorded = _Recorded(ctx.model, ctx.options, ctx.evaluate, ctx.names, ctx.constants, ctx.rules)
    try:
        yield recorded
    finally:
        for builder in recorded.builders:
            builder.discard()
