"""Finds the best cut of a loop into two parts, each of which becomes a loop.

The first loop returns stacks of some of its values, and the second loop computes its states from them. The second part has all work
that depends on its states. All other work may be in either part, or in both. The best cut carries the least data from the first
part to the second. It is found as a minimum cut of a graph (algorithm of Edmonds and Karp).
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

    ``carried``: the values that the second part reads from stacks of the first part. ``shared``: the nodes that both parts run.
    ``between``: the nodes that depend on states of the first part, and that only states of the second part need. ``alive``: the
    memory that the stacks of ``carried`` take.
    """

    states: tuple[State, ...]
    outputs: tuple[ScanOutput, ...]
    nodes: tuple[ir.Node, ...]
    carried: tuple[ir.Value, ...]
    shared: frozenset[ir.Node]
    between: tuple[ir.Node, ...]
    alive: Liveness

    def cost(self, sizes: StepSizes) -> int:
        """Return the time in ns per step that writing and reading the carried values takes."""
        return sum(transfer_ns(value, sizes) for value in self.carried)


class CutGraph:
    """A directed graph. ``with_source`` finds a minimum cut between the vertices SOURCE and SINK.

    An edge of cost ``FOREVER`` is never cut. The algorithm fills one shortest path from the source to the sink after another, until
    no path has capacity left. The source's side of the cut then has all vertices that the source still reaches. No other minimum
    cut has fewer vertices on this side. Few values cross between the parts of a loop, so there are few paths.
    """

    SOURCE, SINK = "source", "sink"

    def __init__(self) -> None:
        self._left: dict[Hashable, dict[Hashable, int]] = {self.SOURCE: {}, self.SINK: {}}

    def edge(self, start: Hashable, end: Hashable, cost: int) -> None:
        """Add an edge that costs ``cost`` if ``start`` is on the source's side and ``end`` on the sink's side."""
        self._left.setdefault(end, {}).setdefault(start, 0)
        edges = self._left.setdefault(start, {})
        edges[end] = min(FOREVER, edges.get(end, 0) + cost)

    def with_source(self, most_paths: int) -> set[Hashable] | None:
        """Return the source's side of a minimum cut; None if all cuts cost FOREVER or need too many paths."""
        for _ in range(most_paths):
            before = self._search()
            if self.SINK not in before:
                return set(before)
            path: list[tuple[Hashable, Hashable]] = []
            end: Hashable = self.SINK
            while end != self.SOURCE:
                path.append((before[end], end))
                end = before[end]
            amount = min(self._left[start][end] for start, end in path)
            if amount >= FOREVER:
                return None
            for start, end in path:
                if self._left[start][end] < FOREVER:
                    self._left[start][end] -= amount
                self._left[end][start] = min(FOREVER, self._left[end][start] + amount)
        return None

    def _search(self) -> dict[Hashable, Hashable]:
        """Search breadth-first from the source to the sink. Map each reached vertex to its predecessor."""
        before: dict[Hashable, Hashable] = {self.SOURCE: self.SOURCE}
        waiting: deque[Hashable] = deque([self.SOURCE])
        while waiting and self.SINK not in before:
            start = waiting.popleft()
            for end, left in self._left[start].items():
                if left and end not in before:
                    before[end] = start
                    waiting.append(end)
        return before


def find_cut(
    loop: ScanView, components: Components, second: int, sizes: StepSizes, *, bare: bool = False
) -> StateCut | NotApplicable:
    """Return the best cut whose second part has the states of the components ``second``, or a reason.

    Args:
        loop: The loop to cut.
        components: The states of the loop, in groups of states that need each other.
        second: Bit ``i`` is set if component ``i`` belongs to the second part.
        sizes: The sizes of the values of a step.
        bare: True if the first part must do only the work for its own states and outputs, even if more data is then carried.
    """
    states = [state for number, group in enumerate(components.members) if second >> number & 1 for state in group]
    chosen = set(states)
    late = {node for node in loop.body if components.components_of_node[node] & second}
    outputs = [output for output in loop.scan_outputs if components.components_of_value.get(output.inner, 0) & second]
    first_outputs = [output for output in loop.scan_outputs if output not in outputs]
    wanted_first = [*(state.next for state in loop.states if state not in chosen), *(output.inner for output in first_outputs)]
    early = set(nodes_computing(loop.body, wanted_first))
    wanted = [*(state.next for state in states), *(output.inner for output in outputs)]
    read = [value for node in loop.body if node in late for value in reads(node)] + wanted
    free = {scan.inner for scan in loop.scan_inputs}
    inside = {value for node in loop.body for value in node.outputs} | {state.inner for state in loop.states}
    own = {state.inner for state in states} | {value for node in late for value in node.outputs}
    needed = [value for value in dict.fromkeys(read) if value in inside and value not in own and value not in free]
    with_first = None if bare else _graph(loop, needed, early, late, free | own, sizes).with_source(_MOST_PATHS)
    if with_first is None:
        with_first = {CutGraph.SOURCE, *early}
    carried, again = _carried(loop, needed, with_first, early)
    nodes = tuple(node for node in loop.body if node in late or node in again)
    refusal, alive = _memory(carried, loop, sizes)
    if refusal is not None:
        return refusal
    feeding = nodes_computing(loop.body, [state.next for state in states], {value for node in early for value in node.outputs})
    between = tuple(node for node in feeding if node not in late and components.components_of_node[node])
    return StateCut(
        tuple(state for state in loop.states if state in chosen),
        tuple(outputs),
        nodes,
        tuple(carried),
        frozenset(again & early),
        between,
        alive,
    )


def _graph(
    loop: ScanView, needed: Sequence[ir.Value], early: set[ir.Node], late: set[ir.Node], ours: set[ir.Value], sizes: StepSizes
) -> CutGraph:
    """Return a graph of what either part may compute. In a cut, the first part computes the source's side.

    ``early``: the nodes that the first part needs. ``late``: the nodes that need the second part. ``ours``: values of the second.
    """
    graph = CutGraph()
    started = {state.inner for state in loop.states} - ours
    seen: set[ir.Node | ir.Value] = set()
    in_loop = weight_bytes(loop.body, sizes)

    def value_edges(value: ir.Value) -> None:
        node = value.producer()
        if value in seen:
            return
        seen.add(value)
        if value in started:
            graph.edge(CutGraph.SOURCE, value, _carrying(value, sizes))
        elif node is not None and node.graph is loop.body:
            graph.edge(node, value, _carrying(value, sizes))
            waiting.append(node)

    waiting: list[ir.Node] = []
    for value in needed:
        graph.edge(value, CutGraph.SINK, FOREVER)
        value_edges(value)
    while waiting:
        node = waiting.pop()
        if node in seen or node in late:
            continue
        seen.add(node)
        if not is_deterministic(node) or node_graphs(node):
            graph.edge(CutGraph.SOURCE, node, FOREVER)
        elif node in early:
            graph.edge(CutGraph.SOURCE, node, _PER_NS * saved_ns([node], in_loop, sizes))
        for value in reads(node):
            if value not in ours:
                graph.edge(value, node, FOREVER)
                value_edges(value)
                producer = value.producer()
                if node not in early and producer is not None and producer.graph is loop.body and producer not in early:
                    graph.edge(node, producer, FOREVER)
    return graph


def _carrying(value: ir.Value, sizes: StepSizes) -> int:
    """Return the cost of carrying ``value``, or FOREVER if impossible. Bytes decide between equal times."""
    if value.shape is None or not isinstance(value.type, ir.TensorType) or sizes.stack_obstacle(value) is not None:
        return FOREVER
    return _PER_NS * transfer_ns(value, sizes) + min(_PER_NS - 1, sizes.step_bytes(value))


def _carried(
    loop: ScanView, needed: Sequence[ir.Value], with_first: Set[Hashable], early: set[ir.Node]
) -> tuple[list[ir.Value], set[ir.Node]]:
    """Return the values to carry, and the nodes that the second part runs to compute ``needed`` from them."""
    carried: dict[ir.Value, None] = {}
    again: set[ir.Node] = set()
    states = {state.inner for state in loop.states}
    free = {scan.inner for scan in loop.scan_inputs}
    waiting = list(reversed(needed))
    while waiting:
        value = waiting.pop()
        node = value.producer()
        if value in states or (node is not None and node.graph is loop.body and node in with_first):
            carried.setdefault(value)
        elif node is not None and node.graph is loop.body and value not in free and node not in again:
            again.add(node)
            waiting.extend(reversed(reads(node)))
    return list(carried), again


def _memory(carried: Sequence[ir.Value], loop: ScanView, sizes: StepSizes) -> tuple[NotApplicable | None, Liveness]:
    """Return (reason, memory) of stacks of ``carried``. The reason is None if they are possible and fit."""
    alive = Liveness(loop, sizes)
    for value in carried:
        if value.shape is None or not isinstance(value.type, ir.TensorType):
            detail = f"the rank of '{value.name}' is not known, but a result of the loop needs a rank"
            return NotApplicable("RANK-UNKNOWN", detail, silent=True), alive
        stack = {value: Operand(value, True, value)}
        refusal = sizes.stack_obstacle(value) or alive.refusal(stack)
        if refusal is not None:
            return refusal, alive
        alive.hold(stack)
    return None, alive


def stack_of(value: ir.Value, loop: ScanView, name: str) -> ir.Value:
    """Return a new value called ``name``, with the type and shape of a stack of ``value`` for all steps.

    Named sizes of the body become unknown. But if ``value`` is a state or its next value, the sizes of the initial value are used.
    """
    source = through_identity(value)
    holders = [state.initial for state in loop.states if source in (state.inner, through_identity(state.next))]
    shape = next((initial.shape for initial in holders if initial.shape is not None), without_names(value.shape))
    shape = with_axes(shape, 0, dim_of(loop.scan_inputs[0].outer, 0))
    return ir.Value(name=name, type=value.type, shape=shape)
