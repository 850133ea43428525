"""Where to cut a loop in two, so that some of its states are computed in a second loop that reads what the first one gives.

The second part holds everything that is computed from its states. What is computed from the states of the first part alone, or from
no state, may be done in either part, or in both; the cut is the one that carries the least data between the two.
"""

from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.cut.components import Components
from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.cut.step_costs import carrying_ns, staying_ns, weight_bytes
from rewrites.analysis.dependence import is_deterministic, reads
from rewrites.base.not_applicable import NotApplicable
from rewrites.batching import Operand
from rewrites.fission.liveness import Liveness
from rewrites.fission.min_cut import FOREVER, CutGraph
from rewrites.graph.dims import with_axes, without_names
from rewrites.graph.values import dim_of, through_identity
from rewrites.graph.walk import node_graphs
from rewrites.loops import ScanOutput, ScanView, State

__all__ = ["StateCut", "find_cut", "stack_of"]

_MOST_PATHS = 64
_PER_NS = 1 << 10


@dataclass(frozen=True)
class StateCut:
    """``states`` and ``outputs`` of the second part, and the ``nodes`` of the body that it needs, in order.

    ``carried``: what the first part computes and the second reads. ``shared``: those of ``nodes`` that the first part needs too.
    ``between``: nodes that read the states of the first part and that only the states of the second part need.
    ``alive``: the memory that the stacks of what is carried take.
    """

    states: tuple[State, ...]
    outputs: tuple[ScanOutput, ...]
    nodes: tuple[ir.Node, ...]
    carried: tuple[ir.Value, ...]
    shared: frozenset[ir.Node]
    between: tuple[ir.Node, ...]
    alive: Liveness

    def cost(self, sizes: StepSizes) -> int:
        """Return what carrying the data costs in each step, in ns."""
        return sum(carrying_ns(value, sizes) for value in self.carried)


def find_cut(
    loop: ScanView, components: Components, second: int, sizes: StepSizes, *, bare: bool = False
) -> StateCut | NotApplicable:
    """Cut ``loop`` so that the components with a bit in ``second``, and what is computed from them, come after the others.

    Args:
        loop: The loop to cut.
        components: Its states in groups that need each other.
        second: A bit for each component of the second part.
        sizes: The sizes of the values of a step.
        bare: Leave to the first part only what its own states and outputs need, whatever that carries.
    """
    states = [state for number, group in enumerate(components.members) if second >> number & 1 for state in group]
    chosen = set(states)
    late = {node for node in loop.body if components.of[node] & second}
    outputs = [output for output in loop.scan_outputs if components.behind.get(output.inner, 0) & second]
    first_outputs = [output for output in loop.scan_outputs if output not in outputs]
    wanted_first = [*(state.next for state in loop.states if state not in chosen), *(output.inner for output in first_outputs)]
    early = _made_for(wanted_first, loop, set())
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
    feeding = _made_for([state.next for state in states], loop, early)
    between = tuple(node for node in loop.body if node in feeding and node not in late and components.of[node])
    return StateCut(
        tuple(state for state in loop.states if state in chosen),
        tuple(outputs),
        nodes,
        tuple(carried),
        frozenset(again & early),
        between,
        alive,
    )


def stack_of(value: ir.Value, loop: ScanView, name: str) -> ir.Value:
    """Return a value called ``name`` that can hold ``value`` for all steps.

    Names of sizes in a body mean nothing outside, but a state has the shape of its initial value in every step.
    """
    source = through_identity(value)
    holders = [state.initial for state in loop.states if source in (state.inner, through_identity(state.next))]
    shape = next((initial.shape for initial in holders if initial.shape is not None), without_names(value.shape))
    shape = with_axes(shape, 0, dim_of(loop.scan_inputs[0].outer, 0))
    return ir.Value(name=name, type=value.type, shape=shape)


def _made_for(values: Sequence[ir.Value], loop: ScanView, stop: set[ir.Node]) -> set[ir.Node]:
    """Return the backward slice of ``values`` in the body, up to the nodes of ``stop``."""
    found: set[ir.Node] = set()
    waiting = list(values)
    while waiting:
        node = waiting.pop().producer()
        if node is not None and node.graph is loop.body and node not in found and node not in stop:
            found.add(node)
            waiting.extend(reads(node))
    return found


def _graph(
    loop: ScanView, needed: Sequence[ir.Value], early: set[ir.Node], late: set[ir.Node], ours: set[ir.Value], sizes: StepSizes
) -> CutGraph:
    """Return the graph of nodes and values that both parts may compute; a value's side says whether it is carried or computed."""
    graph = CutGraph()
    started = {state.inner for state in loop.states} - ours
    seen: set[ir.Node] = set()
    met: set[ir.Value] = set()
    in_loop = weight_bytes(loop.body, sizes)

    def value_edges(value: ir.Value) -> None:
        node = value.producer()
        if value in met:
            return
        met.add(value)
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
            graph.edge(CutGraph.SOURCE, node, _PER_NS * staying_ns([node], in_loop, sizes))
        for value in reads(node):
            if value not in ours:
                graph.edge(value, node, FOREVER)
                value_edges(value)
                maker = value.producer()
                if node not in early and maker is not None and maker.graph is loop.body and maker not in early:
                    graph.edge(node, maker, FOREVER)
    return graph


def _carried(
    loop: ScanView, needed: Sequence[ir.Value], with_first: Set[Hashable], early: set[ir.Node]
) -> tuple[list[ir.Value], set[ir.Node]]:
    """Return what is carried, and the nodes that the second part computes itself to have ``needed``."""
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


def _carrying(value: ir.Value, sizes: StepSizes) -> int:
    """Return what it costs to carry ``value``, and of two that cost the same the smaller less; what no stack can hold never is."""
    if value.shape is None or not isinstance(value.type, ir.TensorType) or sizes.not_a_stack(value) is not None:
        return FOREVER
    return _PER_NS * carrying_ns(value, sizes) + min(_PER_NS - 1, sizes.step(value))


def _memory(carried: Sequence[ir.Value], loop: ScanView, sizes: StepSizes) -> tuple[NotApplicable | None, Liveness]:
    """Say whether stacks of ``carried`` fit in the memory budget together."""
    alive = Liveness(loop, sizes)
    for value in carried:
        if value.shape is None or not isinstance(value.type, ir.TensorType):
            detail = f"the rank of '{value.name}' is not known, which a result of the loop needs"
            return NotApplicable("RANK-UNKNOWN", detail, silent=True), alive
        stack = {value: Operand(value, True, value)}
        refusal = sizes.not_a_stack(value) or alive.refusal(stack)
        if refusal is not None:
            return refusal, alive
        alive.hold(stack)
    return None, alive
