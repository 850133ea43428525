"""Unrolls a loop with a known number of steps: replaces it by a copy of its body for each step.

    hT, ys = Scan(h0, xs) body(h, x) => (f(h, x), g(h, x))   # xs [3, ...]
    ->    x0, x1, x2 = Split(Reshape(xs)); h1 = f(h0, x0); y0 = g(h0, x0); h2 = f(h1, x1); ...; ys = Reshape(Concat(y0, y1, y2))

The steps are then simplified. Nodes that depend only on constants, such as the step number, are folded. Nodes that compute the same
are merged. Results that nothing reads are not stacked. A node that reads a single step of a stack reads the result of this step
directly.

Conditions:

* The number of steps is a constant within the limits of ``UnrollLimits``.
* The condition of a Loop never stops the Loop.
* The loop is not compiled to a faster plan.

These loops stay:

* An opset-8 Scan, because its body reads single batch elements.
* Loops with random operators that have a seed, because all copies would draw the same numbers.
* Loops with Bernoulli, because onnxruntime merges its copies.
* Loops with operators of unknown domains, because they may depend on earlier steps.

Works around ORT-BERNOULLI-MERGED.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.cut.step_costs import weight_bytes
from rewrites.analysis.dependence import is_deterministic
from rewrites.analysis.unroll_limits import too_long
from rewrites.base import since
from rewrites.base.report import PatchOutcome
from rewrites.cleanup.cleanup import clean_up
from rewrites.cleanup.folding import computed_constants
from rewrites.cleanup.stacking import stack, unstack
from rewrites.graph.builder import Builder
from rewrites.graph.clones import copy_nodes
from rewrites.graph.context import Context
from rewrites.graph.dims import is_made_up
from rewrites.graph.marks import mark_unrolled
from rewrites.graph.replace import can_copy, remove_nodes, replace_value
from rewrites.graph.type_names import type_name
from rewrites.graph.values import is_read
from rewrites.graph.walk import all_nodes
from rewrites.loops import Loop, LoopView, ScanInput, ScanOutput, ScanView, State, loops_in
from rewrites.loops.parts import label
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule, is_to_be_compiled

__all__ = ["RULE", "check"]


_SPLIT = (
    *("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "BOOL", "STRING"),
    *("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
)
_NOT_SPLIT = frozenset(kind for kind in ir.DataType if kind.name not in _SPLIT)
_MOST_WEIGHTS = 64 << 10
"""If a plan copies more bytes of weights in each run, unrolling counts as faster."""
_KNOWN_DOMAINS = frozenset({"", "com.microsoft", "ai.onnx.ml"})


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the loop can be unrolled."""
    if ctx.options.unroll.steps == 0:
        return _disabled_reason(loop, ctx)
    steps = loop.steps
    if not isinstance(steps, int):
        return _unknown_steps_reason(loop, ctx)
    if steps < 1 or loop.batched:
        return NOTHING_HERE
    known = computed_constants([scan.outer for scan in loop.scan_inputs], ctx)
    refusal = too_long(loop, steps, known, ctx) or _reason_to_stay(loop, ctx) or _faster_plan_reason(loop, ctx)
    if refusal is not None:
        return refusal

    def edit() -> Sequence[ir.Node]:
        graph = loop.node.graph
        assert isinstance(graph, ir.Graph)
        nodes = clean_up(graph, _unroll(loop, steps, known, ctx), ctx)
        mark_unrolled(nodes, loop.node)
        return loops_in(nodes)

    return Patch(f"unrolled the {steps} steps", edit, outcome=PatchOutcome(unrolled=steps))


def _disabled_reason(loop: Loop, ctx: Context) -> NotApplicable:
    target = ctx.options.target
    if loop.kind in target.control_flow:
        return NOTHING_HERE
    return NotApplicable("UNROLL-OFF", f"{target.name} has no {loop.kind}, and unrolling is switched off")


def _unknown_steps_reason(loop: Loop, ctx: Context) -> NotApplicable:
    stops = isinstance(loop, LoopView) and not loop.never_stops_early
    if stops or loop.kind in ctx.options.target.control_flow:
        return NOTHING_HERE
    named = isinstance(loop.steps, str) and not is_made_up(loop.steps)
    number = f"'{loop.steps}'" if named else "not known"
    detail = f"the number of steps is {number} before the model runs, and {ctx.options.target.name} has no {loop.kind}"
    return NotApplicable("UNROLL-UNKNOWN", detail)


def _reason_to_stay(loop: Loop, ctx: Context) -> NotApplicable | None:
    parts: list[ScanInput | ScanOutput] = [*loop.scan_inputs, *loop.scan_outputs]
    if ctx.opset < since.NEGATIVE_AXES and any(part.axis < 0 for part in parts):
        return NotApplicable("RANK-UNKNOWN", f"an axis counts from the end of a tensor of unknown rank, in opset {ctx.opset}")
    for value in [*(scan.inner for scan in loop.scan_inputs), *(output.inner for output in loop.scan_outputs)]:
        if value.dtype in _NOT_SPLIT:
            return NotApplicable(
                "UNROLL-TYPE", f"'{value.name}' is {type_name(value.dtype)}, which onnxruntime neither splits nor joins"
            )
    for node in all_nodes(loop.body):
        if node.domain not in _KNOWN_DOMAINS:
            detail = f"{node.domain}.{node.op_type} is unknown here, and may have a memory of earlier steps"
            return NotApplicable("UNROLL-MEMORY", detail)
        if not is_deterministic(node) and (node.op_type == "Bernoulli" or "seed" in node.attributes):
            return NotApplicable("RANDOM", f"copies of {node.op_type} {label(node)} would draw the same numbers in each step")
    for state in loop.states:
        returned = state.final is not None and state.final.is_graph_output()
        if returned and not can_copy(state.initial, ctx.opset):
            detail = f"the state '{state.inner.name}' may be returned unchanged, but opset {ctx.opset} cannot copy it"
            return NotApplicable("LOOP-SEQUENCE", detail)
    return None


def _faster_plan_reason(loop: Loop, ctx: Context) -> NotApplicable | None:
    """Return a reason not to unroll a loop of the main graph because its compiled plan is faster.

    With 8 to 12 steps, plans were measured to be 1.6 to 10 times faster. But a plan copies the weights once in each run. For a
    matrix with 256 columns or more, this copy takes longer than a few steps, so the loop is unrolled.
    """
    if not ctx.options.unroll.where_it_pays or not isinstance(loop, ScanView) or loop.node.graph is not ctx.model.graph:
        return None
    if not is_to_be_compiled(loop, ctx) or weight_bytes(loop.body, StepSizes.of(loop, ctx)) > _MOST_WEIGHTS:
        return None
    return NotApplicable("COST-UNROLL", "the plan of the loop, which is to be compiled, is faster than its steps unrolled")


def _unroll(loop: Loop, steps: int, known_arrays: Mapping[ir.Value, np.ndarray], ctx: Context) -> list[ir.Node]:
    """Replace the loop by a copy of its body for each step, and return all new nodes in order.

    ``known_arrays``: the arrays of those scan inputs that are constant.
    """
    graph = loop.node.graph
    assert isinstance(graph, ir.Graph)
    steady = loop.kind == "Scan"
    build = ctx.builder()
    rows = {scan.inner: _rows(build, scan, steps, known_arrays) for scan in loop.scan_inputs}
    nodes = list(build.nodes)
    build.insert_before(loop.node)
    states = {state: state.initial for state in loop.states}
    stacked: dict[ScanOutput, list[ir.Value]] = {output: [] for output in loop.scan_outputs}
    body = list(loop.body)
    for step in range(steps):
        value_map = {state.inner: value for state, value in states.items()}
        value_map |= {inner: values[step] for inner, values in rows.items()}
        if isinstance(loop, LoopView):
            arrays = loop.inputs_in_step(step).items()
            value_map |= {
                inner: ctx.constants.value(array, "step" if inner is loop.iteration else "const") for inner, array in arrays
            }
        copies = copy_nodes(body, value_map, ctx.names, str(step), named=steady)
        graph.insert_before(loop.node, copies)
        nodes += copies
        states = {state: value_map.get(state.next, state.next) for state in states}
        for output, values in stacked.items():
            values.append(value_map.get(output.inner, output.inner))
    nodes += _replace_results(loop, states, stacked, ctx)
    remove_nodes([loop.node])
    return nodes


def _rows(build: Builder, scan: ScanInput, steps: int, known_arrays: Mapping[ir.Value, np.ndarray]) -> list[ir.Value]:
    outer = build.const(known_arrays[scan.outer]) if scan.outer in known_arrays else scan.outer
    rows = unstack(build, outer, scan.axis, steps)
    return rows[::-1] if scan.reverse else rows


def _replace_results(
    loop: Loop, states: dict[State, ir.Value], stacked: dict[ScanOutput, list[ir.Value]], ctx: Context
) -> list[ir.Node]:
    """Replace the outputs of the loop by the final states and by stacks of the results of all steps.

    Return the nodes that build the stacks.

    Args:
        states: The value of each state after the last step.
        stacked: The results of all steps for each scan output.
    """
    build = ctx.builder()
    results = [(state.final, value) for state, value in states.items()]
    for output, values in stacked.items():
        if output.outer is not None and is_read(output.outer):
            results.append((output.outer, stack(build, values[::-1] if output.reverse else values, output.axis, output.inner)))
    nodes = list(build.nodes)
    build.insert_before(loop.node)
    for old, new in results:
        if old is not None:
            if new.shape is None and new.producer() in nodes:
                new.shape = old.shape
            replace_value(old, new, ctx.names)
    return nodes


RULE = Rule("unroll", "unroll", "loop", check)
