"""Replace the results of a loop by stacks that hold the loop's states for all steps."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.dependence import nodes_computing, not_repeatable, reads, unread_nodes, varying_values
from rewrites.base.not_applicable import NotApplicable
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import through_identity
from rewrites.loops import ScanInput, ScanOutput, ScanView, State, rebuild
from rewrites.loops.own_results import give_own_nodes
from rewrites.ops.versions import reversed_if, slice_axis, unsqueeze
from rewrites.scans.associative_scan import StackEnds

__all__ = ["StateUse", "bind_state", "is_used", "put_stacks", "read_stacks", "replace_state", "use_of"]

_END = 2**63 - 1


def is_used(value: ir.Value | None) -> bool:
    """Return True if a node reads ``value``, or if ``value`` is an output of a graph."""
    return value is not None and bool(value.uses() or value.is_graph_output())


def bind_state(
    build: Builder,
    loop: ScanView,
    state: State,
    rows: ir.Value,
    *,
    first: int = 0,
    last: Callable[[], ir.Value] | None = None,
    backwards: bool = False,
) -> dict[ir.Value, ir.Value]:
    """Return a dictionary from each output of ``loop`` that holds ``state`` to its new value.

    The nodes that compute the new values from ``rows`` are written to ``build``.

    Args:
        rows: The states after each step, in the order of the steps, or in reversed order if ``backwards``.
        first: The index in ``rows`` of the state after the first step. Earlier rows are dropped.
        last: Function that returns the state after the last step. If None, the last step in ``rows`` is used.
    """
    results, ends = dict[ir.Value, ir.Value](), StackEnds(build, backwards)
    for output in loop.scan_outputs:
        source = through_identity(output.inner)
        if output.outer is None or source not in (state.inner, through_identity(state.next)):
            continue
        if source is state.inner:
            initial = unsqueeze(build, state.initial, [0])
            stack = ends.with_first(initial, slice_axis(build, rows, 0, first, -1) if first else ends.without_last(rows))
        else:
            stack = slice_axis(build, rows, 0, first, _END) if first else rows
        results[output.outer] = reversed_if(build, stack, output.reverse != backwards)
    if state.final is not None and is_used(state.final):
        results[state.final] = ends.last(rows) if last is None else last()
    return results


def put_stacks(values: Iterable[ir.Value], stacks: Stacks, sizes: StepSizes) -> NotApplicable | None:
    """Write nodes to ``stacks`` that compute ``values`` for all steps.

    Return a reason if this is impossible or exceeds the memory budget, else None.
    """
    nodes = nodes_computing(stacks.body, values, [*stacks.replacements, *stacks.sources()])
    varying = varying_values(stacks.body, stacks.sources())
    for node in nodes:
        stacked = [value for value in node.outputs if value in varying]
        reason = not_repeatable(node) or next((why for value in stacked if (why := sizes.stack_obstacle(value))), None)
        if reason is not None:
            return reason
    return stacks.add_all(nodes)


@dataclass(frozen=True)
class StateUse:
    """Tells which values of ``state`` are read by other nodes, in the loop or after it.

    Args:
        nexts: The body values that equal the next value of the state.
        before: True if the state before each step is read.
        after: True if the state after each step is read.
        final: True if the state after the last step is read.
    """

    state: State
    nexts: tuple[ir.Value, ...]
    before: bool
    after: bool
    final: bool

    @property
    def values(self) -> list[tuple[ir.Value, ...]]:
        """The body values that hold the state and are read in each step. Equal values form a group."""
        return [same for same, is_read in (((self.state.inner,), self.before), (self.nexts, self.after)) if is_read]


def use_of(loop: ScanView, state: State, makers: Sequence[ir.Node], also: Sequence[ir.Node] = ()) -> StateUse:
    """Return which values of ``state`` are read by other nodes than ``makers`` and ``also``.

    Args:
        makers: The nodes that compute the next value of the state.
        also: Other nodes that read the state only to compute its next value.
    """
    nexts = tuple(node.outputs[0] for node in makers)
    read = {value for output in loop.scan_outputs for value in (output.inner, through_identity(output.inner))}
    read |= {value for another in loop.states if another is not state for value in (another.next, through_identity(another.next))}
    others = [node for node in loop.body if node not in (*makers, *also) and node.op_type != "Identity"]
    read |= {through_identity(value) for node in others for value in reads(node)}
    return StateUse(state, nexts, state.inner in read, any(value in read for value in nexts), is_used(state.final))


def replace_state(stacks: Stacks, use: StateUse, final: ir.Value | None, ctx: Context) -> list[ir.Node]:
    """Let the loop scan the values of a state from ``stacks`` instead of computing them.

    Args:
        stacks: Holds the values of the state in all steps.
        use: The values of the state that are read.
        final: The state after the last step; None if nothing reads it.

    Returns:
        A list with the rebuilt loop. It is empty if the loop has no other results.
    """
    others = [state for state in stacks.loop.states if state is not use.state]
    return read_stacks(stacks, use.values, others, [] if final is None else [(use.state.final, final)], ctx)


def read_stacks(
    stacks: Stacks,
    groups: Sequence[Sequence[ir.Value]],
    states: Sequence[State],
    results: Iterable[tuple[ir.Value | None, ir.Value]],
    ctx: Context,
) -> list[ir.Node]:
    """Let the loop scan body values from ``stacks`` instead of computing them.

    Outputs of the loop that stack such values are replaced by the stacks.

    Args:
        stacks: The values of all steps. The nodes that compute them are inserted before the loop.
        groups: The body values that the stacks hold, in groups of equal values.
        states: The states that the loop keeps.
        results: Pairs (output of the loop, new value) for other outputs to replace.

    Returns:
        A list with the rebuilt loop. It is empty if all results of the loop are replaced.
    """
    loop = stacks.loop
    known = {value: stacks.stack_of(same[0]) for same in groups for value in same}
    replaced, outputs = list[tuple[ir.Value | None, ir.Value]](), list[ScanOutput]()
    for output in loop.scan_outputs:
        stack = known.get(through_identity(output.inner) or output.inner)
        if stack is None:
            outputs.append(output)
        else:
            replaced.append((output.outer, stacks.ordered(stack, output.reverse)))
    stacks.build.insert_before(loop.node)
    for old, new in (*replaced, *results):
        if old is not None:
            replace_value(old, new, ctx.names)
    if not states and not outputs:
        remove_nodes([loop.node])
        return []
    scans, inners = list[ScanInput](), dict[ir.Value, ir.Value]()
    for same in groups:
        inner = ir.Value(name=ctx.names.fresh(f"{same[0].name}_in"), type=same[0].type, shape=same[0].shape)
        scans.append(ScanInput(known[same[0]], inner, 0, stacks.backwards))
        inners.update(dict.fromkeys(same, inner))
    for value, inner in inners.items():
        for node, index in value.uses():
            node.replace_input_with(index, inner)
    states = [replace(state, next=inners.get(state.next, state.next)) for state in states]
    outputs = [replace(output, inner=inners.get(output.inner, output.inner)) for output in outputs]
    loop.body.outputs[:] = [*(state.next for state in states), *(output.inner for output in outputs)]
    remove_nodes(unread_nodes(loop.body))
    scans = [scan for scan in scans if scan.inner.uses() or scan.inner in loop.body.outputs]
    node = rebuild(loop, ctx.names, states=states, scan_inputs=[*loop.scan_inputs, *scans], scan_outputs=outputs)
    give_own_nodes(loop.body, ctx.names)
    return [node]
