"""Finds the best cut of a loop into two parts, each of which becomes a loop.

The second loop reads values of the first loop from stacks. The second part has all work that depends on its states. Other work may
be in either part, or in both. The best cut carries the least data. It is a minimum cut of a graph (Edmonds and Karp).
"""

from collections import deque
from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.cut.components import Components
from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.cut.step_costs import saved_ns, transfer_ns, weight_bytes
from rewrites.analysis.dependence import is_deterministic, nodes_computing, reads
from rewrites.base.not_applicable import NotApplicable
from rewrites.batching import Operand
from rewrites.fission.liveness import Liveness
from rewrites.graph.dims import with_axes, without_names
from rewrites.graph.values import dim_of, through_identity
from rewrites.graph.walk import node_graphs
from rewrites.loops import ScanOutput, ScanView, State

__all__ = ["FOREVER", "CutGraph", "StateCut", "find_cut", "stack_of"]

_MOST_PATHS = 64
_PER_NS = 1 << 10
FOREVER = 1 << 60


@dataclass(frozen=True)
class StateCut:
    """The second part of a cut loop: its ``states``, scan ``outputs`` and body ``nodes``, in order.

    ``carried``: values read from stacks of the first part. ``shared``: nodes that both parts run. ``intermediate``: nodes that
    depend on states of the first part, and that only states of the second part need. ``liveness``: the memory of stacks.
    """

    states: tuple[State, ...]
    outputs: tuple[ScanOutput, ...]
    nodes: tuple[ir.Node, ...]
    carried: tuple[ir.Value, ...]
    shared: frozenset[ir.Node]
    intermediate: tuple[ir.Node, ...]
    liveness: Liveness

    def cost(self, sizes: StepSizes) -> int:
        """Return the time in ns per step that writing and reading the carried values takes."""
        return sum(transfer_ns(value, sizes) for value in self.carried)


class CutGraph:
    """A directed graph in which ``minimum_cut`` separates the vertices SOURCE and SINK.

    The algorithm fills one shortest path from the source to the sink after another, until no path has capacity left. Of all minimum
    cuts, the result has the fewest vertices on the source's side. An edge of cost ``FOREVER`` is never cut.
    """

    SOURCE, SINK = "source", "sink"

    def __init__(self) -> None:
        self._capacities: dict[Hashable, dict[Hashable, int]] = {self.SOURCE: {}, self.SINK: {}}

    def edge(self, start: Hashable, end: Hashable, cost: int) -> None:
        """Add an edge. Cuts with ``start`` on the source's side and ``end`` on the sink's side pay ``cost``."""
        self._capacities.setdefault(end, {}).setdefault(start, 0)
        edges = self._capacities.setdefault(start, {})
        edges[end] = min(FOREVER, edges.get(end, 0) + cost)

    def minimum_cut(self, max_paths: int) -> set[Hashable] | None:
        """Return the source's side of a minimum cut; None if every cut costs FOREVER or needs too many paths."""
        for _ in range(max_paths):
            predecessors = self._search_paths()
            if self.SINK not in predecessors:
                return set(predecessors)
            path: list[tuple[Hashable, Hashable]] = []
            end: Hashable = self.SINK
            while end != self.SOURCE:
                path.append((predecessors[end], end))
                end = predecessors[end]
            amount = min(self._capacities[start][end] for start, end in path)
            if amount >= FOREVER:
                return None
            for start, end in path:
                if self._capacities[start][end] < FOREVER:
                    self._capacities[start][end] -= amount
                self._capacities[end][start] = min(FOREVER, self._capacities[end][start] + amount)
        return None

    def _search_paths(self) -> dict[Hashable, Hashable]:
        """Search breadth-first from the source to the sink. Map each reached vertex to its predecessor."""
        predecessors: dict[Hashable, Hashable] = {self.SOURCE: self.SOURCE}
        queue: deque[Hashable] = deque([self.SOURCE])
        while queue and self.SINK not in predecessors:
            start = queue.popleft()
            for end, capacity in self._capacities[start].items():
                if capacity and end not in predecessors:
                    predecessors[end] = start
                    queue.append(end)
        return predecessors


def find_cut(
    loop: ScanView, components: Components, second_components: int, sizes: StepSizes, *, minimal_first: bool = False
) -> StateCut | NotApplicable:
    """Return the best cut of ``loop`` with ``second_components`` in the second part, or a reason.

    Args:
        loop: The loop to cut.
        components: The states of the loop, in groups of states that need each other.
        second_components: Bit ``i`` is set if the states of component ``i`` belong to the second part.
        sizes: The sizes of the values of a step.
        minimal_first: True if the first part must only compute its own states and outputs, even if this carries more data.
    """
    states = [state for number, group in enumerate(components.members) if second_components >> number & 1 for state in group]
    chosen = set(states)
    second = {node for node in loop.body if components.components_of_node[node] & second_components}
    outputs = [output for output in loop.scan_outputs if components.components_of_value.get(output.inner, 0) & second_components]
    first_outputs = [output for output in loop.scan_outputs if output not in outputs]
    first_results = [*(state.next for state in loop.states if state not in chosen), *(output.inner for output in first_outputs)]
    first = set(nodes_computing(loop.body, first_results))
    second_results = [*(state.next for state in states), *(output.inner for output in outputs)]
    read = [value for node in loop.body if node in second for value in reads(node)] + second_results
    free = {scan.inner for scan in loop.scan_inputs}
    inside = {value for node in loop.body for value in node.outputs} | {state.inner for state in loop.states}
    own = {state.inner for state in states} | {value for node in second for value in node.outputs}
    needed = [value for value in dict.fromkeys(read) if value in inside and value not in own and value not in free]
    first_side = None if minimal_first else _cut_graph(loop, needed, first, second, free | own, sizes).minimum_cut(_MOST_PATHS)
    if first_side is None:
        first_side = {CutGraph.SOURCE, *first}
    carried, recomputed = _carried_and_recomputed(loop, needed, first_side, first)
    nodes = tuple(node for node in loop.body if node in second or node in recomputed)
    refusal, liveness = _stack_memory(carried, loop, sizes)
    if refusal is not None:
        return refusal
    feeding = nodes_computing(loop.body, [state.next for state in states], {value for node in first for value in node.outputs})
    intermediate = tuple(node for node in feeding if node not in second and components.components_of_node[node])
    return StateCut(
        tuple(state for state in loop.states if state in chosen),
        tuple(outputs),
        nodes,
        tuple(carried),
        frozenset(recomputed & first),
        intermediate,
        liveness,
    )


def _cut_graph(
    loop: ScanView, needed: Sequence[ir.Value], early: set[ir.Node], late: set[ir.Node], own: set[ir.Value], sizes: StepSizes
) -> CutGraph:
    """Return the graph of the values that either part may compute. The source's side is the first part.

    ``early``: the nodes that the first part needs. ``late``: the nodes that need the second part. ``own``: the second part's
    values.
    """
    graph = CutGraph()
    first_states = {state.inner for state in loop.states} - own
    visited: set[ir.Node | ir.Value] = set()
    loop_weight_bytes = weight_bytes(loop.body, sizes)

    def value_edges(value: ir.Value) -> None:
        node = value.producer()
        if value in visited:
            return
        visited.add(value)
        if value in first_states:
            graph.edge(CutGraph.SOURCE, value, _carrying_cost(value, sizes))
        elif node is not None and node.graph is loop.body:
            graph.edge(node, value, _carrying_cost(value, sizes))
            pending.append(node)

    pending: list[ir.Node] = []
    for value in needed:
        graph.edge(value, CutGraph.SINK, FOREVER)
        value_edges(value)
    while pending:
        node = pending.pop()
        if node in visited or node in late:
            continue
        visited.add(node)
        if not is_deterministic(node) or node_graphs(node):
            graph.edge(CutGraph.SOURCE, node, FOREVER)
        elif node in early:
            graph.edge(CutGraph.SOURCE, node, _PER_NS * saved_ns([node], loop_weight_bytes, sizes))
        for value in reads(node):
            if value not in own:
                graph.edge(value, node, FOREVER)
                value_edges(value)
                producer = value.producer()
                if node not in early and producer is not None and producer.graph is loop.body and producer not in early:
                    graph.edge(node, producer, FOREVER)
    return graph


def _carrying_cost(value: ir.Value, sizes: StepSizes) -> int:
    """Return the cost of carrying ``value``, or FOREVER if impossible. Between equal times, bytes decide."""
    if value.shape is None or not isinstance(value.type, ir.TensorType) or sizes.stack_obstacle(value) is not None:
        return FOREVER
    return _PER_NS * transfer_ns(value, sizes) + min(_PER_NS - 1, sizes.step_bytes(value))


def _carried_and_recomputed(
    loop: ScanView, needed: Sequence[ir.Value], first_side: Set[Hashable], first: set[ir.Node]
) -> tuple[list[ir.Value], set[ir.Node]]:
    """Return the values to carry, and the nodes that compute ``needed`` from them in the second part."""
    carried: dict[ir.Value, None] = {}
    recomputed: set[ir.Node] = set()
    states = {state.inner for state in loop.states}
    free = {scan.inner for scan in loop.scan_inputs}
    pending = list(reversed(needed))
    while pending:
        value = pending.pop()
        node = value.producer()
        if value in states or (node is not None and node.graph is loop.body and node in first_side):
            carried.setdefault(value)
        elif node is not None and node.graph is loop.body and value not in free and node not in recomputed:
            recomputed.add(node)
            pending.extend(reversed(reads(node)))
    return list(carried), recomputed


def _stack_memory(carried: Sequence[ir.Value], loop: ScanView, sizes: StepSizes) -> tuple[NotApplicable | None, Liveness]:
    """Return (reason, memory) of stacks of ``carried``. The reason is None if they are possible and fit."""
    liveness = Liveness(loop, sizes)
    for value in carried:
        if value.shape is None or not isinstance(value.type, ir.TensorType):
            detail = f"the rank of '{value.name}' is not known, but a result of the loop needs a rank"
            return NotApplicable("RANK-UNKNOWN", detail, silent=True), liveness
        stack = {value: Operand(value, True, value)}
        refusal = sizes.stack_obstacle(value) or liveness.refusal(stack)
        if refusal is not None:
            return refusal, liveness
        liveness.add(stack)
    return None, liveness


def stack_of(value: ir.Value, loop: ScanView, name: str) -> ir.Value:
    """Return a new value called ``name`` with the type and shape of a stack of ``value`` for all steps.

    Named sizes of the body become unknown sizes. But if ``value`` is a state or its next value, the initial value gives the sizes.
    """
    source = through_identity(value)
    holders = [state.initial for state in loop.states if source in (state.inner, through_identity(state.next))]
    shape = next((initial.shape for initial in holders if initial.shape is not None), without_names(value.shape))
    shape = with_axes(shape, 0, dim_of(loop.scan_inputs[0].outer, 0))
    return ir.Value(name=name, type=value.type, shape=shape)
