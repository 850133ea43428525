"""Replaces a loop by a call of ortscan's library with a loop plan. The loop remains as the fallback.

    hT, ys = Scan(h0, xs) body(h, x) => (f(h, x, w), g(h, x, w))
    ->    hT, ys = ai.ortscan.Scan1 <plan> (h0, xs, w)
          ai.ortscan.Scan1:l0 (h0, xs, w) => (hT, ys) { hT, ys = Scan(h0, xs) body(h, x) => (f(h, x, w), g(h, x, w)) }
    hT, ys = Loop(M, cond, h0) body(i, c, h) => (c', h', y)
    ->    hT, ys = ai.ortscan.Loop1 <plan> (cond, h0, M, w)    with a function that holds the Loop

The new node refers to a function that contains the loop. In a session without the library, onnxruntime inlines this function. If
the plan includes operators before and after a Scan (``rewrites.native.around``), the function contains these too. It also contains
the constants that the loop and these operators read. Condition: every operator of the body can be part of a plan.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.base.plain_text import counted
from rewrites.base.report import PatchOutcome
from rewrites.graph.context import Context
from rewrites.graph.replace import take_over
from rewrites.graph.type_names import type_name
from rewrites.graph.values import is_constant
from rewrites.loops import Loop, LoopView, ScanInput, ScanOutput, ScanView, State, captured_values, make_scan, replace_node
from rewrites.native.around import SurroundingNodes, find_surrounding_nodes, none_around
from rewrites.native.compiling import CompiledLoop, compile_loop
from rewrites.native.encoding import to_text
from rewrites.native.functions import (
    add_constant_nodes,
    add_function,
    free_overload,
    make_function,
    new_parameter,
    replace_reads,
)
from rewrites.native.operator_names import DOMAIN, LOOP_OPERATOR, OPERATOR
from rewrites.native.plan import Plan
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_FLOATS = frozenset({ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE})
_NO_LIMIT = np.array(np.iinfo(np.int64).max)


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the loop has a plan."""
    if DOMAIN not in ctx.options.domains:
        return NOTHING_HERE
    surrounding = find_surrounding_nodes(loop) if isinstance(loop, ScanView) else SurroundingNodes((), (), (), loop.scan_outputs)
    compiled = compile_loop(loop, ctx, surrounding)
    if isinstance(compiled, NotApplicable) and surrounding.nodes and isinstance(loop, ScanView):
        surrounding = none_around(loop)
        compiled = compile_loop(loop, ctx)
    if isinstance(compiled, NotApplicable):
        return compiled
    refusal = _unwritable_constant(loop, compiled, surrounding, ctx) if ctx.opset < since.CONSTANT_TYPES else None
    if refusal is not None:
        return refusal
    compiled_loop = compiled

    def edit() -> Sequence[ir.Node]:
        if isinstance(loop, ScanView):
            _replace_scan(loop, compiled_loop, surrounding, ctx)
        else:
            _replace_loop(loop, compiled_loop, ctx)
        return []

    count = len(compiled.plan.instructions)
    operator = OPERATOR if isinstance(loop, ScanView) else LOOP_OPERATOR
    made = PatchOutcome(instructions=max(1, count))
    what = f"wrote a plan of {counted(count, 'instruction')} for {DOMAIN}.{operator}"
    kinds = ", ".join(node.op_type for node in surrounding.nodes)
    note = f"the plan includes {counted(len(surrounding.nodes), 'operator')} beside the loop: {kinds}"
    return Patch(what, edit, (*compiled.notes, *_plan_notes(compiled.plan), *([note] if surrounding.nodes else [])), made)


def _unwritable_constant(loop: Loop, compiled: CompiledLoop, surrounding: SurroundingNodes, ctx: Context) -> NotApplicable | None:
    """Return a reason if the function needs a constant that is not a float.

    Before opset 9, Constant holds only floats.
    """
    read = [*captured_values(loop.body), *(value for node in surrounding.nodes for value in node.inputs if value is not None)]
    for value in read:
        if value not in compiled.captured and is_constant(value) and value.dtype not in _FLOATS:
            return NotApplicable(
                "NATIVE-TYPE", f"'{value.name}' is {type_name(value.dtype)}; the Constant of opset {ctx.opset} holds only floats"
            )
    return None


def _replace_scan(loop: ScanView, compiled: CompiledLoop, surrounding: SurroundingNodes, ctx: Context) -> None:
    """Replace the Scan by a call of a function. The function holds the Scan and the operators around it."""
    old, model, graph = loop.node, ctx.model, loop.node.graph
    assert graph is not None
    call_inputs = [*(state.initial for state in loop.states), *(scan.outer for scan in surrounding.scans), *compiled.captured]
    results = [*(state.final for state in loop.states), *(output.outer for output in surrounding.stacked)]
    outputs = [
        ir.Value(name=ctx.names.fresh(_name_or_default(value)), type=None if value is None else value.type) for value in results
    ]
    overload = free_overload(model, OPERATOR)
    function = _scan_function(loop, compiled, surrounding, overload, ctx)
    plan = ir.AttrString("plan", to_text(compiled.plan))
    call = ir.Node(DOMAIN, OPERATOR, call_inputs, [plan], overload=overload, outputs=outputs, name=old.name)
    for node in surrounding.nodes:
        for index in range(len(node.inputs)):
            node.replace_input_with(index, None)
    own = [(value, new) for value, new in zip(results, outputs, strict=True) if value is not None and value in old.outputs]
    replace_node(old, call, own, ctx.names)
    for value, new in zip(results, outputs, strict=True):
        if value is not None and value not in old.outputs:
            take_over(value, new, ctx.names)
    graph.remove(surrounding.nodes, safe=True)
    for value in outputs:
        value.name = value.name or ctx.names.fresh("unread")  # the function returns it anyway
    add_function(model, function)


def _name_or_default(value: ir.Value | None) -> str:
    return "result" if value is None or not value.name else value.name


def _scan_function(loop: ScanView, compiled: CompiledLoop, around: SurroundingNodes, overload: str, ctx: Context) -> ir.Function:
    del loop.node.attributes["body"]
    states = [State(new_parameter(state.initial, ctx), state.inner, state.next, None) for state in loop.states]
    scanned = {scan: new_parameter(scan.outer, ctx) for scan in around.scans}
    stacks = {scan.outer: parameter for scan, parameter in scanned.items()}
    new_values = {value: new_parameter(value, ctx) for value in compiled.captured}
    plan_results = {output.outer for output in loop.scan_outputs} | {node.outputs[0] for node in around.nodes}
    read = [value for node in around.nodes for value in node.inputs if value is not None]
    outer = captured_values(loop.body) + [value for value in read if value not in stacks and value not in plan_results]
    constants = add_constant_nodes(outer, new_values, ctx)
    replace_reads(loop.body, new_values)
    before = [_copy_into_function(node, new_values, stacks, ctx) for node in around.before]
    scans = [ScanInput(scanned.get(scan, stacks[scan.outer]), scan.inner, scan.axis, scan.reverse) for scan in loop.scan_inputs]
    outputs = [ScanOutput(output.inner, None, output.axis, output.reverse) for output in loop.scan_outputs]
    scan = make_scan(ctx.names, loop.body, states, scans, outputs, "loop")
    finals, stacked = scan.outputs[: len(states)], scan.outputs[len(states) :]
    stacks |= {part.outer: value for part, value in zip(loop.scan_outputs, stacked, strict=True) if part.outer is not None}
    after = [_copy_into_function(node, new_values, stacks, ctx) for node in around.after]
    row_results = dict(zip(loop.scan_outputs, stacked, strict=True))
    results = [
        row_results[output] if output in row_results or output.outer is None else stacks[output.outer] for output in around.stacked
    ]
    parameters = [*(state.initial for state in states), *scanned.values(), *map(new_values.__getitem__, compiled.captured)]
    return make_function(OPERATOR, overload, parameters, [*finals, *results], [*constants, *before, scan, *after], ctx)


def _copy_into_function(
    node: ir.Node, new_values: dict[ir.Value, ir.Value], stacks: dict[ir.Value, ir.Value], ctx: Context
) -> ir.Node:
    """Return a copy of ``node`` that reads the values of the function.

    ``node`` comes before or after the loop.

    Args:
        new_values: Maps outer values to the values that replace them in the function.
        stacks: Maps stacks of the model to the stacks that replace them in the function. This call adds the result of ``node``.
    """
    old = node.outputs[0]
    call_inputs = [None if value is None else stacks.get(value) or new_values[value] for value in node.inputs]
    stacks[old] = ir.Value(name=ctx.names.fresh(_name_or_default(old)))
    attributes = list(node.attributes.values())
    return ir.Node(node.domain, node.op_type, call_inputs, attributes, outputs=[stacks[old]], name=ctx.names.fresh(node.op_type))


def _plan_notes(plan: Plan) -> list[str]:
    """Return notes on ``plan`` for the report.

    The notes say, in this order:

    * the operations that run step by step, such as "the plan runs one step after the other: 2 gemm, 1 tanh"
    * the operations that run for a block of steps at once
    * the operator that runs in a session without the library
    """
    notes = []
    for stepwise, when in ((True, "one step after the other"), (False, f"{plan.block} steps at once")):
        ops = [step.op for phase in plan.phases if phase.stepwise == stepwise for step in phase.of(plan.instructions)]
        if ops:
            counted = [f"{count} {op.name.replace('_', ' ').lower()}" for op, count in Counter(ops).most_common()]
            notes.append(f"the plan runs {when}: {', '.join(counted)}")
    return [*notes, f"a session without ortscan's library runs the {plan.form.name.title()}"]


def _replace_loop(loop: LoopView, compiled: CompiledLoop, ctx: Context) -> None:
    """Replace the Loop by a call of a function that holds the Loop."""
    old, build, body = loop.node, ctx.builder(), loop.body
    condition = loop.condition if loop.condition is not None else build.const(np.array(True), np.bool_)
    limit = loop.limit if loop.limit is not None else build.const(_NO_LIMIT)
    build.insert_before(old)
    call_inputs = [condition, *(state.initial for state in loop.states), limit, *compiled.captured]
    outputs = [ir.Value(name=ctx.names.fresh(value.name or "result"), type=value.type) for value in old.outputs]
    overload = free_overload(ctx.model, LOOP_OPERATOR)
    del old.attributes["body"]
    function_condition, states, function_limit = (
        new_parameter(condition, ctx),
        [new_parameter(state.initial, ctx) for state in loop.states],
        new_parameter(limit, ctx),
    )
    new_values = {value: new_parameter(value, ctx) for value in compiled.captured}
    parameters = [function_condition, *states, function_limit, *new_values.values()]
    constants = add_constant_nodes(captured_values(body), new_values, ctx)
    replace_reads(body, new_values)
    results = [ir.Value(name=ctx.names.fresh(value.name or "result"), type=value.type) for value in body.outputs[1:]]
    copy = ir.Node(
        "",
        "Loop",
        [function_limit, function_condition, *states],
        [ir.AttrGraph("body", body)],
        outputs=results,
        name=ctx.names.fresh("loop"),
    )
    function = make_function(LOOP_OPERATOR, overload, parameters, results, [*constants, copy], ctx)
    plan = ir.AttrString("plan", to_text(compiled.plan))
    call = ir.Node(DOMAIN, LOOP_OPERATOR, call_inputs, [plan], overload=overload, outputs=outputs, name=old.name)
    replace_node(old, call, list(zip(old.outputs, outputs, strict=True)), ctx.names)
    for value in outputs:
        value.name = value.name or ctx.names.fresh("unread")  # the function returns it anyway
    add_function(ctx.model, function)


RULE = Rule("native-loop", "native", "loop", check, use="asked")
