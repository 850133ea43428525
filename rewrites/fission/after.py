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
from rewrites.fission.before import MovedBefore
from rewrites.fission.liveness import Liveness
from rewrites.fission.profitability import MeasuredSet, MeasuredSets
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import with_axes, without_names
from rewrites.graph.values import dim_of, through_identity
from rewrites.graph.walk import node_graphs
from rewrites.loops import ScanOutput, ScanView

__all__ = ["Groups", "MovedAfter", "NodeGroup", "find_after"]


@dataclass(frozen=True)
class MovedAfter:
    """The ``nodes`` that move after a loop. ``input_stacks`` maps the values that they read to stacks."""

    nodes: list[ir.Node]
    input_stacks: dict[ir.Value, ir.Value]
    refused: dict[ir.Node, NotApplicable]
    liveness: Liveness


@dataclass(frozen=True)
class NodeGroup:
    """A node and the movable nodes on which it depends. They read ``inputs`` and compute ``results``.

    ``copies``: all are Identities. ``has_few_rows``: one multiplies few rows by weights. ``path_ns``: the time of the longest path.
    """

    inputs: MeasuredSet
    results: MeasuredSet
    copies: bool
    has_few_rows: bool
    path_ns: int


class Groups:
    """Finds groups of movable nodes. ``bytes_read`` returns the bytes per step that reading a value takes."""

    def __init__(
        self, nodes: Iterable[ir.Node], before: MovedBefore, sizes: StepSizes, bytes_read: Callable[[ir.Value], int]
    ) -> None:
        self.chosen = set(nodes)
        self._before, self._sizes = before, sizes
        self._reads, self._results = MeasuredSets(bytes_read), MeasuredSets(sizes.step_bytes)
        self._known: dict[ir.Node, NodeGroup] = {}

    def group_of(self, node: ir.Node) -> NodeGroup:
        """Return the group of ``node``: the node and all movable nodes on which it depends."""
        pending = [node]
        while pending:
            missing = [producer for producer in self._producers(pending[-1]) if producer not in self._known]
            pending.extend(missing)
            if not missing:
                ready = pending.pop()
                self._known[ready] = self._known.get(ready) or self._group(ready)
        return self._known[node]

    def least_result_bytes(self, node: ir.Node) -> int:
        """Return a lower bound of the bytes per step that the results of the group of ``node`` take."""
        own_results = self._results.set_of(_read_outside(node.outputs, set()))
        return self._results.union([own_results, self.group_of(node).results]).size

    def backward_slice(self, node: ir.Node) -> set[ir.Node]:
        """Return ``node`` and all movable nodes on which it depends."""
        nodes, pending = {node}, [node]
        while pending:
            new = [producer for producer in self._producers(pending.pop()) if producer not in nodes]
            nodes.update(new)
            pending.extend(new)
        return nodes

    def keep_in_loop(self, group: set[ir.Node]) -> None:
        """Mark the nodes of ``group`` as not movable, so that they stay in the loop."""
        self.chosen -= group
        waiting = list(group)
        while waiting:
            node = waiting.pop()
            if self._known.pop(node, None) is not None:
                waiting.extend(user for value in node.outputs for user, _ in value.uses())

    def _group(self, node: ir.Node) -> NodeGroup:
        parts = [self._known[producer] for producer in self._producers(node)]
        entering = (value for value in node.inputs if value is not None and value.producer() not in self.chosen)
        crossing = self._reads.set_of(value for value in entering if not self._before.stacks.has(value))
        results = self._results.set_of(_read_outside(node.outputs, self.chosen))
        return NodeGroup(
            self._reads.union([crossing, *(part.inputs for part in parts)]),
            self._results.union([results, *(part.results for part in parts)]),
            node.op_type == "Identity" and all(part.copies for part in parts),
            has_few_rows(node, self._sizes) or any(part.has_few_rows for part in parts),
            saved_ns([node], 0, self._sizes) + max((part.path_ns for part in parts), default=0),
        )

    def _producers(self, node: ir.Node) -> dict[ir.Node, None]:
        producers = (value.producer() for value in node.inputs if value is not None)
        return {producer: None for producer in producers if producer is not None and producer in self.chosen}


def _read_outside(values: Iterable[ir.Value], group: set[ir.Node]) -> list[ir.Value]:
    """Return the ``values`` that a node outside ``group`` reads or the graph returns."""
    return [value for value in values if value.is_graph_output() or any(user not in group for user, _ in value.uses())]


def find_after(loop: ScanView, before: MovedBefore, ctx: Context, sizes: StepSizes, build: Builder) -> MovedAfter:
    """Find the work that can move after the loop, and emit it. Add its stacks to ``before.stacks``."""
    moved_before = set(before.nodes)
    core = [node for node in loop.body if node not in moved_before]
    refused = {node: replace(reason, silent=True) for node, reason in before.refused.items() if not reason.silent}
    stacks = before.stacks
    start = dict(stacks.replacements)
    stacks.build = build
    while True:
        nodes = _worth_moving(loop, _movable(loop, core, before, refused), sizes, before)
        input_stacks = _input_stacks(loop, nodes, before, ctx)
        liveness = before.liveness.copy()
        liveness.ignore_states(state for state in loop.states if state not in before.states)
        failed = _without_stacks(nodes, input_stacks, sizes, liveness)
        if not failed:
            for value, stack in input_stacks.items():
                stacks.set(value, stack)
            failed = _emit_for_all_steps(nodes, stacks, liveness)
        if not failed:
            return MovedAfter(nodes, input_stacks, refused, liveness)
        refused.update(failed)
        build.discard()
        stacks.replacements = dict(start)


def _worth_moving(loop: ScanView, nodes: list[ir.Node], sizes: StepSizes, before: MovedBefore) -> list[ir.Node]:
    """Return the ``nodes`` that are worth moving. A group that multiplies few rows by weights is.

    Another group stays if it only copies, reads over twice the bytes that it writes, or is faster in the loop than with stacks.
    """
    existing = {through_identity(output.inner) for output in _usable_as_stacks(loop, before)}
    groups = Groups(nodes, before, sizes, lambda value: 0 if value in existing else sizes.step_bytes(value))
    for node in nodes:
        group = groups.group_of(node)
        if not group.inputs.members or group.has_few_rows:
            continue
        read, written = group.inputs.size, groups.least_result_bytes(node)
        if not group.copies and read <= 2 * written and move_ns(read, sizes) <= group.path_ns + move_ns(written, sizes):
            continue
        members = groups.backward_slice(node)
        inside = {value for member in members for value in member.outputs}
        written = sum(map(sizes.step_bytes, _read_outside(inside, members)))
        if group.copies or read > 2 * written or move_ns(read, sizes) > saved_ns(members, 0, sizes) + move_ns(written, sizes):
            groups.keep_in_loop(members)
    return [node for node in nodes if node in groups.chosen]


def _usable_as_stacks(loop: ScanView, before: MovedBefore) -> list[ScanOutput]:
    """Return the scan outputs whose axis 0 is the steps, in the same direction as in ``before.stacks``."""
    return [output for output in loop.scan_outputs if output.reverse == before.stacks.backwards and output.axis == 0]


def _movable(loop: ScanView, core: list[ir.Node], before: MovedBefore, refused: dict[ir.Node, NotApplicable]) -> list[ir.Node]:
    """Return the nodes of ``core``, in order, that no remaining state and no remaining node needs."""
    needed = {state.next for state in loop.states if state not in before.states}
    chosen: set[ir.Node] = set()
    for node in reversed(core):
        can_move = node not in refused and not node_graphs(node) and is_deterministic(node)
        if can_move and needed.isdisjoint(node.outputs):
            chosen.add(node)
        else:
            needed.update(reads(node))
    return [node for node in core if node in chosen]


def _input_stacks(loop: ScanView, nodes: list[ir.Node], before: MovedBefore, ctx: Context) -> dict[ir.Value, ir.Value]:
    results = {value for node in nodes for value in node.outputs}
    outputs = {through_identity(output.inner): output for output in _usable_as_stacks(loop, before) if output.inner not in results}
    steps = dim_of(loop.scan_inputs[0].outer, 0)
    input_stacks: dict[ir.Value, ir.Value] = {}
    for value in (value for node in nodes for value in node.inputs if value is not None and value not in results):
        if value in input_stacks or before.stacks.has(value):
            continue
        output = outputs.get(value)
        if output is not None and output.outer is not None and not before.stacks.has(output.inner):
            input_stacks[value] = output.outer
            continue
        shape = with_axes(without_names(value.shape), 0, steps)
        input_stacks[value] = ir.Value(name=ctx.names.fresh(f"{value.name}_steps"), type=value.type, shape=shape)
    return input_stacks


def _without_stacks(
    nodes: list[ir.Node], input_stacks: dict[ir.Value, ir.Value], sizes: StepSizes, liveness: Liveness
) -> dict[ir.Node, NotApplicable]:
    """Return reasons for ``nodes`` whose inputs cannot be stacked. Add the other inputs to ``liveness``."""
    refused: dict[ir.Node, NotApplicable] = {}
    added: set[ir.Value] = set()
    for node in nodes:
        entering = [value for value in node.inputs if value is not None and value in input_stacks]
        new = {value: Operand(input_stacks[value], True, value) for value in entering if value not in added}
        reasons = [*map(_without_rank, entering), *map(sizes.over_budget, node.outputs), *map(sizes.stack_obstacle, entering)]
        reason = next(filter(None, [*reasons, liveness.refusal(new)]), None)
        if reason is not None:
            refused[node] = reason
            continue
        liveness.add(new)
        added.update(new)
    return refused


def _without_rank(value: ir.Value) -> NotApplicable | None:
    """Return a reason if a Scan cannot return ``value``, because its rank is unknown."""
    if value.shape is not None:
        return None
    return NotApplicable("RANK-UNKNOWN", f"the rank of '{value.name}' is not known, but a result of the loop needs a rank")


def _emit_for_all_steps(nodes: list[ir.Node], stacks: Stacks, liveness: Liveness) -> dict[ir.Node, NotApplicable]:
    """Emit ``nodes`` for all steps at once. Return a reason for each node for which this is impossible."""
    failed: dict[ir.Node, NotApplicable] = {}
    for node in nodes:
        missing = [value for value in node.inputs if value is not None and not stacks.has(value)]
        reason = None
        if not missing:
            built = len(stacks.build.nodes)
            reason = stacks.add(node)
            results = {} if reason is not None else {value: stacks.get(value) for value in node.outputs}
            reason = reason or liveness.refusal(results, stacks.build.nodes[built:])
            if reason is None:
                liveness.add(results, stacks.build.nodes[built:])
                liveness.release_after(node)
        elif not has_rule(node) and any(value.producer() in failed for value in missing):
            reason = NotApplicable("NO-BATCHING-RULE", f"{node.op_type} '{node.name}' has no batching rule")
        if reason is not None:
            failed[node] = reason
    return failed
