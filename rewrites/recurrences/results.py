"""The results of a loop whose states are known for all steps, and their users."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from rewrites.analysis.dependence import reads, unread_nodes
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import through_identity
from rewrites.loops import ScanInput, ScanOutput, ScanView, State, rebuild
from rewrites.loops.own_results import give_own_nodes
from rewrites.ops.versions import turned

__all__ = ["StateUse", "bind_state", "is_used", "replace_state", "use_of"]


def is_used(value: ir.Value | None) -> bool:
    """Return True if a node or the caller reads ``value``."""
    return value is not None and bool(value.uses() or value.is_graph_output())


def bind_state(
    build: Builder,
    loop: ScanView,
    state: State,
    before: Callable[[], ir.Value],
    after: Callable[[], ir.Value],
    last: Callable[[], ir.Value],
    *,
    backwards: bool = False,
) -> dict[ir.Value, ir.Value]:
    """Return the new value of each output of ``loop`` that holds ``state``.

    Args:
        before: Returns the states before each step, in the order of steps or ``backwards``.
        after: Returns the states after each step.
        last: Returns the state after the last step.
    """
    results = dict[ir.Value, ir.Value]()
    for output in loop.scan_outputs:
        source = through_identity(output.inner)
        if output.outer is not None and source in (state.inner, through_identity(state.next)):
            stack = before() if source is state.inner else after()
            results[output.outer] = turned(build, stack, output.reverse != backwards)
    if state.final is not None and is_used(state.final):
        results[state.final] = last()
    return results


@dataclass(frozen=True)
class StateUse:
    """The uses of ``state`` in a loop and behind it.

    Args:
        nexts: The values of the body that are its next value.
        before: Something reads its value before each step.
        after: Something reads its value after each step.
        final: Something reads its last value.
    """

    state: State
    nexts: tuple[ir.Value, ...]
    before: bool
    after: bool
    final: bool

    @property
    def values(self) -> list[tuple[ir.Value, ...]]:
        """The values of the body that are read in all steps, equal ones together."""
        return [same for same, is_read in (((self.state.inner,), self.before), (self.nexts, self.after)) if is_read]


def use_of(loop: ScanView, state: State, makers: Sequence[ir.Node], also: Sequence[ir.Node] = ()) -> StateUse:
    """Return what is read of ``state``, except by ``makers`` of its next value and by ``also``."""
    nexts = tuple(node.outputs[0] for node in makers)
    read = {value for output in loop.scan_outputs for value in (output.inner, through_identity(output.inner))}
    read |= {value for another in loop.states if another is not state for value in (another.next, through_identity(another.next))}
    others = [node for node in loop.body if node not in (*makers, *also) and node.op_type != "Identity"]
    read |= {through_identity(value) for node in others for value in reads(node)}
    return StateUse(state, nexts, state.inner in read, any(value in read for value in nexts), is_used(state.final))


def replace_state(loop: ScanView, use: StateUse, stacks: Stacks, final: ir.Value | None, ctx: Context) -> list[ir.Node]:
    """Let the loop read ``stacks`` instead of a state.

    Args:
        use: What is read of the state; ``stacks`` has its values of all steps.
        stacks: Their nodes go before the loop.
        final: The last value of the state, if it is read.

    Returns:
        The loop that is left, if any.
    """
    known = {value: stacks.full(same[0]) for same in use.values for value in same}
    results, outputs = list[tuple[ir.Value | None, ir.Value]](), list[ScanOutput]()
    for output in loop.scan_outputs:
        stack = known.get(output.inner) or known.get(through_identity(output.inner) or output.inner)
        if stack is None:
            outputs.append(output)
        else:
            results.append((output.outer, stacks.ordered(stack, output.reverse)))
    stacks.build.insert_before(loop.node)
    if final is not None:
        results.append((use.state.final, final))
    for old, new in results:
        if old is not None:
            replace_value(old, new, ctx.names)
    states = [state for state in loop.states if state is not use.state]
    if not states and not outputs:
        remove_nodes([loop.node])
        return []
    inners = dict[ir.Value, ir.Value]()
    for same in use.values:
        inner = ir.Value(name=ctx.names.fresh(f"{same[0].name}_in"), type=same[0].type, shape=same[0].shape)
        inners.update(dict.fromkeys(same, inner))
    for value, inner in inners.items():
        for node, index in value.uses():
            node.replace_input_with(index, inner)
    states = [replace(state, next=inners.get(state.next, state.next)) for state in states]
    outputs = [replace(output, inner=inners.get(output.inner, output.inner)) for output in outputs]
    loop.body.outputs[:] = [*(state.next for state in states), *(output.inner for output in outputs)]
    remove_nodes(unread_nodes(loop.body))
    stacked = [(known[same[0]], inners[same[0]]) for same in use.values]
    is_read = [bool(inner.uses()) or inner in loop.body.outputs for _, inner in stacked]
    added = [ScanInput(*pair, 0, stacks.backwards) for pair, read in zip(stacked, is_read, strict=True) if read]
    node = rebuild(loop, ctx.names, states=states, scan_inputs=[*loop.scan_inputs, *added], scan_outputs=outputs)
    give_own_nodes(loop.body, ctx.names)
    return [node]
