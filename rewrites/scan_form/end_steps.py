"""Of a scan output that is read at one end only, that one step is computed outside, from the final or the initial states.

    hT, ys = Scan(h0, xs) body(h, x) => (h2 = f(h, x), g(h2, x)); y = ys[-1]    ->    hT = Scan(h0, xs); y = g(hT, xs[-1])

Then no step is stacked, and what only that output needs leaves the body. What needs a state as it was before the last step keeps
that as one more state; the first step needs the initial values only. Conditions: nothing else reads the output; the operators
are not random and hold no branch or loop; at most ``_MOST_NODES`` of them are needed inside too. Never touches an opset-8 Scan, nor
a Loop, which may make no step at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic, reads, unread_nodes
from rewrites.base.plain_text import listed
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import with_size
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import rank_of, through_identity
from rewrites.graph.walk import node_graphs
from rewrites.loops import Loop, LoopView, ScanOutput, ScanView, State, rebuild
from rewrites.loops.own_results import give_own_nodes
from rewrites.ops.versions import slice_axis, squeeze, unsqueeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scan_form.end_reads import EndReads, end_reads

__all__ = ["RULE", "check"]


_MOST_NODES = 64
_END = 2**63 - 1


@dataclass(frozen=True)
class _Plan:
    """``output`` is read as ``found`` says, which is its first step or its last: ``value``, which ``nodes`` make of the rest."""

    output: ScanOutput
    value: ir.Value
    found: EndReads
    first: bool
    nodes: tuple[ir.Node, ...]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Find scan outputs that are read at one end."""
    if isinstance(loop, LoopView) or loop.batched or loop.steps == 1:
        return NOTHING_HERE
    plans = [plan for output in loop.scan_outputs if (plan := _plan(loop, output, ctx)) is not None]
    if not plans:
        return NOTHING_HERE
    names = listed(plan.output.outer.name for plan in plans if plan.output.outer is not None)
    return Patch(f"computed the one step of {names} that is read from the states", lambda: _edit(loop, plans, ctx))


def _plan(loop: ScanView, output: ScanOutput, ctx: Context) -> _Plan | None:
    if output.outer is None or rank_of(output.outer) is None:
        return None
    length = loop.steps if isinstance(loop.steps, int) else None
    found = end_reads(output.outer, output.axis, length, ctx.opset)
    if found is None or found.at_start is None:
        return None
    first = found.at_start != output.reverse
    known = {scan.inner for scan in loop.scan_inputs} | {state.inner for state in loop.states}
    if not first:
        known |= {through_identity(state.next) or state.next for state in loop.states}
    value = through_identity(output.inner) or output.inner
    nodes = _makers(value, known, loop.body)
    inside = _makers_of_states(loop)
    if any(not is_deterministic(node) or node_graphs(node) for node in nodes):
        return None
    if sum(node in inside for node in nodes) > _MOST_NODES or any(rank_of(scan.outer) is None for scan in loop.scan_inputs):
        return None
    return _Plan(output, value, found, first, nodes)


def _makers(value: ir.Value, known: set[ir.Value], body: ir.Graph) -> tuple[ir.Node, ...]:
    """Return the nodes that make ``value`` from ``known``, in order."""
    found: set[ir.Node] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        node = one.producer()
        if one not in known and node is not None and node.graph is body and node not in found:
            found.add(node)
            waiting.extend(reads(node))
    return tuple(node for node in body if node in found)


def _makers_of_states(loop: ScanView) -> set[ir.Node]:
    found: set[ir.Node] = set()
    for state in loop.states:
        found.update(_makers(state.next, set(), loop.body))
    return found


def _edit(loop: ScanView, plans: Sequence[_Plan], ctx: Context) -> list[ir.Node]:
    build = ctx.builder()
    gone = {id(plan.output) for plan in plans}
    previous: dict[State, State] = {}
    for plan in plans:
        value = _computed(loop, plan, previous, build, ctx)
        for repair in plan.found.repairs:
            repair(ctx.constants)
        assert plan.output.outer is not None
        for node, _ in plan.output.outer.uses():
            index = node.inputs[1] if node.op_type == "Gather" and node.graph is loop.node.graph else None
            if index is not None and rank_of(index) == 0:
                replace_value(node.outputs[0], value, ctx.names)
                remove_nodes([node])
        if plan.output.outer.uses():
            stack = unsqueeze(build, value, [plan.output.axis])
            for node, place in plan.output.outer.uses():
                node.replace_input_with(place, stack)
        for between, axis in plan.found.between:
            between.shape = with_size(between.shape, axis, 1)
    outputs = [output for output in loop.scan_outputs if id(output) not in gone]
    states = [*loop.states, *previous.values()]
    if not states and not outputs:
        build.insert_after(loop.node)
        remove_nodes([loop.node])
        return []
    loop.body.outputs[:] = [*(state.next for state in states), *(output.inner for output in outputs)]
    build.insert_after(loop.node)
    remove_nodes(unread_nodes(loop.body))
    node = rebuild(loop, ctx.names, states=states, scan_outputs=outputs)
    give_own_nodes(loop.body, ctx.names)
    return [node]


def _computed(loop: ScanView, plan: _Plan, previous: dict[State, State], build: Builder, ctx: Context) -> ir.Value:
    """Emit what the output is in the one step."""
    known: dict[ir.Value, ir.Value] = {}
    wanted = {value for node in plan.nodes for value in reads(node)} | {plan.value}
    for scan in loop.scan_inputs:
        if scan.inner in wanted:
            start, end = (0, 1) if plan.first != scan.reverse else (-1, _END)
            known[scan.inner] = squeeze(build, slice_axis(build, scan.outer, scan.axis, start, end), [scan.axis])
    for state in loop.states:
        after = through_identity(state.next) or state.next
        inside = after.graph is loop.body
        if not plan.first and inside and after not in known and state.final is not None:
            known[after] = state.final
        if state.inner in wanted and plan.first:
            known[state.inner] = state.initial
    for state in loop.states:
        if state.inner in wanted and state.inner not in known:
            known[state.inner] = _kept(state, previous, ctx)
    for node in plan.nodes:
        copies = build.like(node, [None if value is None else known.get(value, value) for value in node.inputs])
        known.update(zip(node.outputs, copies, strict=True))
    return known.get(plan.value, plan.value)


def _kept(state: State, previous: dict[State, State], ctx: Context) -> ir.Value:
    """Return the value of ``state`` before the last step, which one more state keeps."""
    if state not in previous:
        name = state.inner.name
        inner = ir.Value(name=ctx.names.fresh(f"{name}_before"), type=state.inner.type, shape=state.inner.shape)
        final = ir.Value(name=ctx.names.fresh(f"{name}_before_last"), type=state.initial.type, shape=state.initial.shape)
        previous[state] = State(state.initial, inner, state.inner, final)
    kept = previous[state].final
    assert kept is not None
    return kept


RULE = Rule("end-steps", "scan_form", "loop", check)
