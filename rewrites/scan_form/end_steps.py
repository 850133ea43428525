"""Computes the first or last step of a scan output outside the loop if no other step is read.

    hT, ys = Scan(h0, xs) body(h, x) => (h2 = f(h, x), g(h2, x)); y = ys[-1]    ->    hT = Scan(h0, xs); y = g(hT, xs[-1])

The output is no longer stacked, and nodes that only this output needs are removed from the body. The first step is computed from
the initial states, and the last step from the final states. If the last step needs the value of a state before this step, the loop
keeps this value in an additional state. ``ys[-1]``, ``ys[-1:]``, ``ys[T - 1]`` and ``ys[0]`` are recognised, also after Transpose
and Identity. Conditions: Nothing else reads the output. The nodes that compute it are deterministic and have no nested graphs. At
most ``_MOST_NODES`` of them must stay in the body because states need them, too. The loop is neither an opset-8 Scan nor a Loop: a
Loop may run zero steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic, nodes_computing, reads, unread_nodes
from rewrites.base import since
from rewrites.base.plain_text import listed
from rewrites.graph.builder import Builder, ConstantPool
from rewrites.graph.context import Context
from rewrites.graph.dims import with_size
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import const_array, rank_of, through_identity
from rewrites.graph.walk import node_graphs
from rewrites.loops import Loop, LoopView, ScanOutput, ScanView, State, rebuild
from rewrites.loops.own_results import give_own_nodes
from rewrites.ops.versions import SliceSpec, axis_of, perm_of, slice_axis, slice_spec, squeeze, unsqueeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_MOST_NODES = 64
_END = 2**63 - 1
_LARGE = 2**31 - 1


@dataclass
class _EndReads:
    """The nodes that read the first or last step of a stack.

    Args:
        at_start: True if the nodes read the first step, False if they read the last.
        transposed: Pairs (value, position of the steps axis) for the transposed values between the stack and these nodes.
        index_changes: Functions that change the indices that the nodes read, because the new stack has only one step.
    """

    at_start: bool | None = None
    transposed: list[tuple[ir.Value, int]] = field(default_factory=list)
    index_changes: list[Callable[[ConstantPool], None]] = field(default_factory=list)


@dataclass(frozen=True)
class _StepPlan:
    """How to compute the only step of ``output`` that the nodes of ``end_reads`` read.

    ``is_first``: True for the first step, False for the last. ``nodes``: the body nodes that compute ``value``, the stacked value.
    """

    output: ScanOutput
    value: ir.Value
    end_reads: _EndReads
    is_first: bool
    nodes: tuple[ir.Node, ...]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if only the first or only the last step of a scan output is read."""
    if isinstance(loop, LoopView) or loop.batched or loop.steps == 1:
        return NOTHING_HERE
    plans = [plan for output in loop.scan_outputs if (plan := _match_output(loop, output, ctx)) is not None]
    if not plans:
        return NOTHING_HERE
    names = listed(plan.output.outer.name for plan in plans if plan.output.outer is not None)
    return Patch(f"computed the one step of {names} that is read from the states", lambda: _edit(loop, plans, ctx))


def _match_output(loop: ScanView, output: ScanOutput, ctx: Context) -> _StepPlan | None:
    """Return a plan if only one end step of ``output`` is read and can be computed outside the loop."""
    if output.outer is None or rank_of(output.outer) is None:
        return None
    length = loop.steps if isinstance(loop.steps, int) else None
    end_reads = _end_reads(output.outer, output.axis, length, ctx.opset)
    if end_reads is None or end_reads.at_start is None:
        return None
    is_first = end_reads.at_start != output.reverse
    known = {scan.inner for scan in loop.scan_inputs} | {state.inner for state in loop.states}
    if not is_first:
        known |= {through_identity(state.next) or state.next for state in loop.states}
    value = through_identity(output.inner) or output.inner
    nodes = tuple(nodes_computing(loop.body, [value], known))
    state_nodes = set(nodes_computing(loop.body, [state.next for state in loop.states]))
    if any(not is_deterministic(node) or node_graphs(node) for node in nodes):
        return None
    if sum(node in state_nodes for node in nodes) > _MOST_NODES or any(rank_of(scan.outer) is None for scan in loop.scan_inputs):
        return None
    return _StepPlan(output, value, end_reads, is_first, nodes)


def _edit(loop: ScanView, plans: Sequence[_StepPlan], ctx: Context) -> list[ir.Node]:
    """Replace the outputs of ``plans`` by their end steps. Return the new loop, if one remains."""
    build = ctx.builder()
    removed = {id(plan.output) for plan in plans}
    delayed_states: dict[State, State] = {}
    for plan in plans:
        value = _emit_step(loop, plan, delayed_states, build, ctx)
        for change_indices in plan.end_reads.index_changes:
            change_indices(ctx.constants)
        assert plan.output.outer is not None
        for node, _ in plan.output.outer.uses():
            index = node.inputs[1] if node.op_type == "Gather" and node.graph is loop.node.graph else None
            if index is not None and rank_of(index) == 0:
                replace_value(node.outputs[0], value, ctx.names)
                remove_nodes([node])
        if plan.output.outer.uses():
            stack = unsqueeze(build, value, [plan.output.axis])
            for node, position in plan.output.outer.uses():
                node.replace_input_with(position, stack)
        for transposed, axis in plan.end_reads.transposed:
            transposed.shape = with_size(transposed.shape, axis, 1)
    outputs = [output for output in loop.scan_outputs if id(output) not in removed]
    states = [*loop.states, *delayed_states.values()]
    if not states and not outputs:
        build.insert_after(loop.node)
        remove_nodes([loop.node])
        return []
    build.insert_after(loop.node)
    node = rebuild(loop, ctx.names, states=states, scan_outputs=outputs)
    remove_nodes(unread_nodes(loop.body))
    give_own_nodes(loop.body, ctx.names)
    return [node]


def _emit_step(loop: ScanView, plan: _StepPlan, delayed_states: dict[State, State], build: Builder, ctx: Context) -> ir.Value:
    """Emit the nodes that compute ``plan.value`` in the first or last step, and return the result."""
    known: dict[ir.Value, ir.Value] = {}
    needed = {value for node in plan.nodes for value in reads(node)} | {plan.value}
    for scan in loop.scan_inputs:
        if scan.inner in needed:
            start, end = (0, 1) if plan.is_first != scan.reverse else (-1, _END)
            known[scan.inner] = squeeze(build, slice_axis(build, scan.outer, scan.axis, start, end), [scan.axis])
    for state in loop.states:
        after = through_identity(state.next) or state.next
        inside = after.graph is loop.body
        if not plan.is_first and inside and after not in known and state.final is not None:
            known[after] = state.final
        if state.inner in needed and plan.is_first:
            known[state.inner] = state.initial
    for state in loop.states:
        if state.inner in needed and state.inner not in known:
            known[state.inner] = _value_before_last_step(state, delayed_states, ctx)
    for node in plan.nodes:
        copies = build.like(node, [None if value is None else known.get(value, value) for value in node.inputs])
        known.update(zip(node.outputs, copies, strict=True))
    return known.get(plan.value, plan.value)


def _value_before_last_step(state: State, delayed_states: dict[State, State], ctx: Context) -> ir.Value:
    """Return the value of ``state`` before the last step: the final value of ``delayed_states[state]``.

    This additional state is one step late. If ``delayed_states`` does not have it yet, add it.
    """
    if state not in delayed_states:
        name = state.inner.name
        inner = ir.Value(name=ctx.names.fresh(f"{name}_before"), type=state.inner.type, shape=state.inner.shape)
        final = ir.Value(name=ctx.names.fresh(f"{name}_before_last"), type=state.initial.type, shape=state.initial.shape)
        delayed_states[state] = State(state.initial, inner, state.inner, final)
    value = delayed_states[state].final
    assert value is not None
    return value


def _end_reads(stack: ir.Value, axis: int, length: int | None, opset: int) -> _EndReads | None:
    """Return the nodes that read ``stack`` if all of them read the same end of ``axis``, else None."""
    end_reads = _EndReads()
    pending = [(stack, axis)]
    while pending:
        value, position = pending.pop()
        if value.is_graph_output() or not value.uses():
            return None
        for node, index in value.uses():
            if index != 0 or node.domain != "":
                return None
            moved_axis = _axis_after(node, value, position)
            if moved_axis is not None:
                end_reads.transposed.append((node.outputs[0], moved_axis))
                pending.append((node.outputs[0], moved_axis))
                continue
            at_start = _reads_start(node, value, position, length, opset, end_reads)
            if at_start is None or end_reads.at_start not in (None, at_start):
                return None
            end_reads.at_start = at_start
    return end_reads


def _axis_after(node: ir.Node, value: ir.Value, axis: int) -> int | None:
    """Return the position of ``axis`` in the result of an Identity or Transpose; None for other nodes."""
    if node.op_type == "Identity":
        return axis
    rank = rank_of(value)
    if node.op_type == "Transpose" and rank is not None:
        return list(perm_of(node, rank)).index(axis)
    return None


def _reads_start(node: ir.Node, value: ir.Value, axis: int, length: int | None, opset: int, end_reads: _EndReads) -> bool | None:
    """Return True if ``node`` reads only element 0 along ``axis``, False if only the last, else None."""
    rank = rank_of(value)
    if rank is None:
        return None
    if node.op_type == "Gather" and axis_of(node, 0, rank) == axis:
        index = const_array(node.inputs[1])
        if index is None or index.size != 1:
            return None
        position = int(index.reshape(-1)[0])
        if position not in (0, -1) and position + 1 == length:
            zero = np.zeros_like(index)
            end_reads.index_changes.append(lambda constants: node.replace_input_with(1, constants.value(zero)))
            return False
        return {0: True, -1: False}.get(position)
    if node.op_type != "Slice":
        return None
    spec = slice_spec(node, opset, rank)
    index_of_axis = spec.axes.index(axis) if isinstance(spec, SliceSpec) and axis in spec.axes else None
    if not isinstance(spec, SliceSpec) or index_of_axis is None or spec.steps[index_of_axis] != 1:
        return None
    start, end = spec.starts[index_of_axis], spec.ends[index_of_axis]
    if (start, end) == (0, 1):
        return True
    if start == -1 and (end >= _LARGE or (length is not None and end >= length)):
        return False
    if opset < since.SLICE_INPUTS or length is None or start != length - 1 or end < length:
        return None
    starts, ends = const_array(node.inputs[1]), const_array(node.inputs[2])
    if starts is None or ends is None:
        return None
    starts, ends = starts.copy(), ends.copy()
    starts[index_of_axis], ends[index_of_axis] = -1, np.iinfo(ends.dtype).max

    def change_indices(constants: ConstantPool) -> None:
        node.replace_input_with(1, constants.value(starts))
        node.replace_input_with(2, constants.value(ends))

    end_reads.index_changes.append(change_indices)
    return False


RULE = Rule("end-steps", "scan_form", "loop", check)
