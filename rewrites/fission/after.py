"""Finds the work that can move after a loop: nodes that read states, but that no state needs.

    body(h, x) => (h2, Softmax(MatMul(h2, V)))  ->  body(h, x) => (h2, Identity(h2)), then Softmax(MatMul(stack of h2, V))

Works around ORT-SCAN-RESULT-RANK.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.cut.step_costs import has_few_rows, move_ns, saved_ns
from rewrites.analysis.dependence import is_deterministic, reads
from rewrites.base.not_applicable import NotApplicable
from rewrites.batching import Operand, has_rule
from rewrites.fission.before import LeavingBefore
from rewrites.fission.liveness import Liveness
from rewrites.fission.profitability import MeasuredSet, MeasuredSets
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import with_axes, without_names
from rewrites.graph.values import dim_of, through_identity
from rewrites.graph.walk import node_graphs
from rewrites.loops import ScanOutput, ScanView

__all__ = ["After", "Groups", "NodeGroup", "find_after"]


@dataclass(frozen=True)
class After:
    """The ``nodes`` that leave the loop. ``crossing`` maps the loop's values that they read to stacks."""

    nodes: list[ir.Node]
    crossing: dict[ir.Value, ir.Value]
    refused: dict[ir.Node, NotApplicable]
    alive: Liveness


@dataclass(frozen=True)
class NodeGroup:
    """A node and the chosen nodes that it depends on. They read ``crossing`` and compute ``results``.

    ``copies``: all are Identities. ``has_few_rows``: one multiplies few rows by weights. ``least_ns``: the longest path, in ns.
    """

    crossing: MeasuredSet
    results: MeasuredSet
    copies: bool
    has_few_rows: bool
    least_ns: int


class Groups:
    """Finds the group of each chosen node. ``reading`` maps a value to the bytes that a step reads of it."""

    def __init__(
        self, nodes: Iterable[ir.Node], before: LeavingBefore, sizes: StepSizes, reading: Callable[[ir.Value], int]
    ) -> None:
        self.chosen = set(nodes)
        self._before, self._sizes = before, sizes
        self._reads, self._results = MeasuredSets(reading), MeasuredSets(sizes.step_bytes)
        self._known: dict[ir.Node, NodeGroup] = {}

    def of(self, node: ir.Node) -> NodeGroup:
        """Return the group of ``node``: the node and all chosen nodes that it depends on."""
        waiting = [node]
        while waiting:
            unknown = [producer for producer in self._producers(waiting[-1]) if producer not in self._known]
            waiting.extend(unknown)
            if not unknown:
                known = waiting.pop()
                self._known[known] = self._known.get(known) or self._group(known)
        return self._known[node]

    def least_results(self, node: ir.Node) -> int:
        """Return a lower bound of the bytes per step that the group of ``node`` would write if it moved alone."""
        own = self._results.of(_leaving(node.outputs, set()))
        return self._results.union([own, self.of(node).results]).size

    def backward_slice(self, node: ir.Node) -> set[ir.Node]:
        """Return ``node`` and all chosen nodes that it depends on."""
        nodes, waiting = {node}, [node]
        while waiting:
            new = [producer for producer in self._producers(waiting.pop()) if producer not in nodes]
            nodes.update(new)
            waiting.extend(new)
        return nodes

    def keep(self, group: set[ir.Node]) -> None:
        """Remove the nodes of ``group`` from the chosen nodes, so that they stay in the loop."""
        self.chosen -= group
        waiting = list(group)
        while waiting:
            node = waiting.pop()
            if self._known.pop(node, None) is not None:
                waiting.extend(user for value in node.outputs for user, _ in value.uses())

    def _group(self, node: ir.Node) -> NodeGroup:
        parts = [self._known[producer] for producer in self._producers(node)]
        entering = (value for value in node.inputs if value is not None and value.producer() not in self.chosen)
        crossing = self._reads.of(value for value in entering if not self._before.stacks.has(value))
        results = self._results.of(_leaving(node.outputs, self.chosen))
        return NodeGroup(
            self._reads.union([crossing, *(part.crossing for part in parts)]),
            self._results.union([results, *(part.results for part in parts)]),
            node.op_type == "Identity" and all(part.copies for part in parts),
            has_few_rows(node, self._sizes) or any(part.has_few_rows for part in parts),
            saved_ns([node], 0, self._sizes) + max((part.least_ns for part in parts), default=0),
        )

    def _producers(self, node: ir.Node) -> dict[ir.Node, None]:
        producers = (value.producer() for value in node.inputs if value is not None)
        return {producer: None for producer in producers if producer is not None and producer in self.chosen}


def _leaving(values: Iterable[ir.Value], group: set[ir.Node]) -> list[ir.Value]:
    """Return the ``values`` that a node outside ``group`` reads or the graph returns."""
    return [value for value in values if value.is_graph_output() or any(user not in group for user, _ in value.uses())]


def find_after(loop: ScanView, before: LeavingBefore, ctx: Context, sizes: StepSizes, build: Builder) -> After:
    """Emit the work that can move after the loop into ``build``. Add its stacks to ``before.stacks``."""
    leaves = set(before.nodes)
    core = [node for node in loop.body if node not in leaves]
    refused = {node: replace(reason, silent=True) for node, reason in before.refused.items() if not reason.silent}
    stacks = before.stacks
    start = dict(stacks.replacements)
    stacks.build = build
    while True:
        nodes = _trimmed(loop, _candidates(loop, core, before, refused), sizes, before)
        crossing = _crossing(loop, nodes, before, ctx)
        alive = before.alive.copy()
        alive.forget(state for state in loop.states if state not in before.states)
        failed = _not_crossing(nodes, crossing, sizes, alive)
        if not failed:
            for value, stack in crossing.items():
                stacks.set(value, stack)
            failed = _stacked(nodes, stacks, alive)
        if not failed:
            return After(nodes, crossing, refused, alive)
        refused.update(failed)
        build.discard()
        stacks.replacements = dict(start)


def _trimmed(loop: ScanView, nodes: list[ir.Node], sizes: StepSizes, before: LeavingBefore) -> list[ir.Node]:
    """Return the nodes worth moving. A group that multiplies few rows by weights always moves.

    Other groups stay if they only copy, read over twice the bytes they write, or take less time in the loop than with stacks.
    """
    free = {through_identity(output.inner) for output in _reusable(loop, before)}
    groups = Groups(nodes, before, sizes, lambda value: 0 if value in free else sizes.step_bytes(value))
    for node in nodes:
        group = groups.of(node)
        if not group.crossing.members or group.has_few_rows:
            continue
        read, written = group.crossing.size, groups.least_results(node)
        if not group.copies and read <= 2 * written and move_ns(read, sizes) <= group.least_ns + move_ns(written, sizes):
            continue
        members = groups.backward_slice(node)
        inside = {value for member in members for value in member.outputs}
        written = sum(map(sizes.step_bytes, _leaving(inside, members)))
        if group.copies or read > 2 * written or move_ns(read, sizes) > saved_ns(members, 0, sizes) + move_ns(written, sizes):
            groups.keep(members)
    return [node for node in nodes if node in groups.chosen]


def _reusable(loop: ScanView, before: LeavingBefore) -> list[ScanOutput]:
    """Return the scan outputs that are usable as stacks: steps are axis 0, in the order of the stacks."""
    return [output for output in loop.scan_outputs if output.reverse == before.stacks.backwards and output.axis == 0]


def _candidates(loop: ScanView, core: list[ir.Node], before: LeavingBefore, refused: dict[ir.Node, NotApplicable]) -> list[ir.Node]:
    """Return the nodes of ``core``, in order, that neither a remaining state nor a remaining node needs."""
    needed = {state.next for state in loop.states if state not in before.states}
    chosen: set[ir.Node] = set()
    for node in reversed(core):
        free = node not in refused and not node_graphs(node) and is_deterministic(node)
        if free and needed.isdisjoint(node.outputs):
            chosen.add(node)
        else:
            needed.update(reads(node))
    return [node for node in core if node in chosen]


def _crossing(loop: ScanView, nodes: list[ir.Node], before: LeavingBefore, ctx: Context) -> dict[ir.Value, ir.Value]:
    results = {value for node in nodes for value in node.outputs}
    existing = {through_identity(output.inner): output for output in _reusable(loop, before) if output.inner not in results}
    steps = dim_of(loop.scan_inputs[0].outer, 0)
    crossing: dict[ir.Value, ir.Value] = {}
    for value in (value for node in nodes for value in node.inputs if value is not None and value not in results):
        if value in crossing or before.stacks.has(value):
            continue
        output = existing.get(value)
        if output is not None and output.outer is not None and not before.stacks.has(output.inner):
            crossing[value] = output.outer
            continue
        shape = with_axes(without_names(value.shape), 0, steps)
        crossing[value] = ir.Value(name=ctx.names.fresh(f"{value.name}_steps"), type=value.type, shape=shape)
    return crossing


def _not_crossing(
    nodes: list[ir.Node], crossing: dict[ir.Value, ir.Value], sizes: StepSizes, alive: Liveness
) -> dict[ir.Node, NotApplicable]:
    """Return the nodes whose input stacks are impossible or too large. Add all others to ``alive``."""
    refused: dict[ir.Node, NotApplicable] = {}
    held: set[ir.Value] = set()
    for node in nodes:
        entering = [value for value in node.inputs if value is not None and value in crossing]
        new = {value: Operand(crossing[value], True, value) for value in entering if value not in held}
        refusals = [*map(_without_rank, entering), *map(sizes.over_budget, node.outputs), *map(sizes.stack_obstacle, entering)]
        refusal = next(filter(None, [*refusals, alive.refusal(new)]), None)
        if refusal is not None:
            refused[node] = refusal
            continue
        alive.hold(new)
        held.update(new)
    return refused


def _without_rank(value: ir.Value) -> NotApplicable | None:
    """Return a reason if a Scan cannot return ``value``, because its rank is unknown."""
    if value.shape is not None:
        return None
    return NotApplicable("RANK-UNKNOWN", f"the rank of '{value.name}' is not known, but a result of the loop needs a rank")


def _stacked(nodes: list[ir.Node], stacks: Stacks, alive: Liveness) -> dict[ir.Node, NotApplicable]:
    """Emit ``nodes`` for all steps at once. Map each node for which this is impossible to the reason."""
    failed: dict[ir.Node, NotApplicable] = {}
    for node in nodes:
        missing = [value for value in node.inputs if value is not None and not stacks.has(value)]
        refusal = None
        if not missing:
            built = len(stacks.build.nodes)
            refusal = stacks.add(node)
            results = {} if refusal is not None else {value: stacks.get(value) for value in node.outputs}
            refusal = refusal or alive.refusal(results, stacks.build.nodes[built:])
            if refusal is None:
                alive.hold(results, stacks.build.nodes[built:])
                alive.read(node)
        elif not has_rule(node) and any(value.producer() in failed for value in missing):
            refusal = NotApplicable("NO-BATCHING-RULE", f"{node.op_type} '{node.name}' has no batching rule")
        if refusal is not None:
            failed[node] = refusal
    return failed
