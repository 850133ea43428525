"""A state whose values in all steps are known before the loop, in the place of the state."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from rewrites.analysis.dependence import reads, unread_nodes
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import through_identity
from rewrites.loops import ScanInput, ScanOutput, ScanView, State, rebuild
from rewrites.loops.own_results import give_own_nodes

__all__ = ["Wanted", "give", "wanted"]


@dataclass(frozen=True)
class Wanted:
    """What a loop needs of ``state``, of all steps and after the last.

    ``made``: the values of the body that are its next value. ``before``, ``after``: whether its value at the start, and at the end,
    of each step is read or returned. ``final``: whether its last value is.
    """

    state: State
    made: tuple[ir.Value, ...]
    before: bool
    after: bool
    final: bool

    @property
    def values(self) -> list[tuple[ir.Value, ...]]:
        """The values of the body that are wanted of all steps, those that are the same together."""
        return [same for same, is_wanted in (((self.state.inner,), self.before), (self.made, self.after)) if is_wanted]


def wanted(loop: ScanView, state: State, makers: Sequence[ir.Node], also: Sequence[ir.Node] = ()) -> Wanted:
    """Return what is needed of ``state`` beside what ``makers``, which make its next value, and ``also``, for them, read."""
    made = tuple(node.outputs[0] for node in makers)
    returned = {value for output in loop.scan_outputs for value in (output.inner, through_identity(output.inner))}
    returned |= {value for one in loop.states if one is not state for value in (one.next, through_identity(one.next))}
    others = [node for node in loop.body if node not in (*makers, *also) and node.op_type != "Identity"]
    used = returned | {through_identity(value) for node in others for value in reads(node)}
    final = state.final is not None and bool(state.final.uses() or state.final.is_graph_output())
    return Wanted(state, made, state.inner in used, any(value in used for value in made), final)


def give(loop: ScanView, need: Wanted, stacks: Stacks, final: ir.Value | None, ctx: Context) -> list[ir.Node]:
    """Let the loop read ``stacks`` in the place of a state, whose last value is ``final``; return the loop that is left, if any.

    ``stacks`` has the values of all steps that the loop needs; its nodes are put before the loop.
    """
    given = {value: stacks.full(same[0]) for same in need.values for value in same}
    results, outputs = list[tuple[ir.Value | None, ir.Value]](), list[ScanOutput]()
    for output in loop.scan_outputs:
        stack = given.get(output.inner) or given.get(through_identity(output.inner) or output.inner)
        if stack is None:
            outputs.append(output)
        else:
            results.append((output.outer, stacks.ordered(stack, output.reverse)))
    stacks.build.insert_before(loop.node)
    if final is not None:
        results.append((need.state.final, final))
    for old, new in results:
        if old is not None:
            replace_value(old, new, ctx.names)
    states = [state for state in loop.states if state is not need.state]
    if not states and not outputs:
        remove_nodes([loop.node])
        return []
    scans = {same[0]: given[same[0]] for same in need.values}
    inners = dict[ir.Value, ir.Value]()
    for same in need.values:
        inner = ir.Value(name=ctx.names.fresh(f"{same[0].name}_in"), type=same[0].type, shape=same[0].shape)
        inners.update(dict.fromkeys(same, inner))
    for value, inner in inners.items():
        for node, index in value.uses():
            node.replace_input_with(index, inner)
    states = [replace(state, next=inners.get(state.next, state.next)) for state in states]
    outputs = [replace(output, inner=inners.get(output.inner, output.inner)) for output in outputs]
    loop.body.outputs[:] = [*(state.next for state in states), *(output.inner for output in outputs)]
    remove_nodes(unread_nodes(loop.body))
    added = [ScanInput(scans[value], inners[value], 0, stacks.backwards) for value in scans if _is_read(inners[value], loop.body)]
    node = rebuild(loop, ctx.names, states=states, scan_inputs=[*loop.scan_inputs, *added], scan_outputs=outputs)
    give_own_nodes(loop.body, ctx.names)
    return [node]


def _is_read(value: ir.Value, body: ir.Graph) -> bool:
    return bool(value.uses()) or value in body.outputs
