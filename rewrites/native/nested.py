"""Translates the nodes of a body. It unrolls inner loops, and computes both branches of an If.

    If (c) <then: y = f(x), else: y = g(x)>    ->    a = f(x); b = g(x); y = c ? a : b
    hT, ys = Scan(h, xs[3])                    ->    h1 = f(h, xs[0]); h2 = f(h1, xs[1]); h3 = f(h2, xs[2])

An inner loop must have a known number of steps. Operators that may fail are refused in a branch of an If. So it is safe to compute
both branches.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.graph.dims import differ
from rewrites.graph.type_names import type_name
from rewrites.graph.values import const_array
from rewrites.loops import Loop, LoopView, ScanView, is_loop, view
from rewrites.native.body import Body
from rewrites.native.operations import Op
from rewrites.native.operator_views import TranslatorCall, row_view, stack_rows
from rewrites.native.plan import PlanRefused
from rewrites.native.translators import translate
from rewrites.native.views import View

__all__ = ["NESTED", "translate_graph"]

NESTED = frozenset({"If", "Loop", "Scan"})
"""The operators with nested graphs that are translated here."""
_MOST_STEPS = 4096
"""The maximum number of operations of an unrolled inner loop."""


def translate_graph(graph: ir.Graph, body: Body) -> None:
    """Translate the nodes of ``graph``: add their steps and the views of their outputs to ``body``."""
    for node in graph:
        if all(const_array(value) is not None for value in node.outputs):
            continue
        for value, result in zip(node.outputs, _translate_node(node, body), strict=False):
            if 0 in result.shape or differ(ir.Shape(result.shape), value.shape):
                raise PlanRefused("NATIVE-SHAPE", f"'{value.name}' has the shape {list(result.shape)}, declared is {value.shape}")
            if value.dtype not in (None, result.dtype):
                raise PlanRefused("NATIVE-TYPE", f"'{value.name}' is {type_name(value.dtype)}")
            body.views[value] = result


def _translate_node(node: ir.Node, body: Body) -> Sequence[View]:
    if node.op_type == "If" and not node.domain:
        return _translate_if(TranslatorCall(node, body))
    return _unroll_loop(TranslatorCall(node, body)) if is_loop(node) else translate(node, body)


def _translate_if(call: TranslatorCall) -> Sequence[View]:
    """Translate an If: compute both branches, and select each result by the condition."""
    body, condition = call.body, call.view(0)
    if condition.count != 1:
        raise call.refuse("NATIVE-SHAPE", f"its condition has {condition.count} elements")
    branches = []
    body.enclosing_ifs += 1
    for name in ("then_branch", "else_branch"):
        branch = call.node.attributes[name].as_graph()
        body.nested_graphs.add(branch)
        translate_graph(branch, body)
        branches.append([body.view(value) for value in branch.outputs])
    body.enclosing_ifs -= 1
    truth, results = body.reshaped(condition, ()), []
    for then, otherwise in zip(*branches, strict=True):
        if then.shape != otherwise.shape or then.dtype != otherwise.dtype:
            raise call.refuse("NATIVE-SHAPE", f"its branches return {list(then.shape)} and {list(otherwise.shape)}, or other types")
        results.append(body.elementwise(Op.SELECT, truth, then, otherwise, truth=then.truth))
    return results


def _unroll_loop(call: TranslatorCall) -> Sequence[View]:
    """Translate an inner loop: unroll its steps, and return the views of its results."""
    loop, body = view(call.node, call.opset), call.body
    scanned = [body.view(scan.outer) for scan in loop.scan_inputs]
    count = _step_count(call, loop, scanned)
    body.nested_graphs.add(loop.body)
    states = [body.view(state.initial) for state in loop.states]
    shapes = [state.shape for state in states]
    rows: list[list[View]] = [[] for _ in loop.scan_outputs]
    for step in range(count):
        body.views |= {state.inner: current for state, current in zip(loop.states, states, strict=True)}
        for scan, x in zip(loop.scan_inputs, scanned, strict=True):
            body.views[scan.inner] = row_view(x, scan.axis % len(x.shape), count - 1 - step if scan.reverse else step)
        if isinstance(loop, LoopView):
            body.views[loop.iteration] = body.constant(np.array(step, np.int64))
            body.views[loop.condition_in] = body.constant(np.array(True))
        translate_graph(loop.body, body)
        states = [body.view(state.next) for state in loop.states]
        for stack, output in zip(rows, loop.scan_outputs, strict=True):
            stack.append(body.view(output.inner))
        if len(body.steps) > _MOST_STEPS:
            raise call.refuse("NATIVE-LIMIT", f"its {count} steps need more than {_MOST_STEPS} operations")
    if [state.shape for state in states] != shapes:
        raise call.refuse("NATIVE-SHAPE", "a state changes its shape")
    axes = [(output.axis, output.reverse) for output in loop.scan_outputs]
    return [*states, *(stack_rows(body, stack, *axis_and_order) for stack, axis_and_order in zip(rows, axes, strict=True))]


def _step_count(call: TranslatorCall, loop: Loop, scanned: Sequence[View]) -> int:
    if isinstance(loop, ScanView):
        sizes = {x.shape[scan.axis] for x, scan in zip(scanned, loop.scan_inputs, strict=True) if x.shape}
        count = sizes.pop() if len(sizes) == 1 and not loop.batched else 0
        known = count if count and not call.body.free.is_free(count) else None
    else:
        known = loop.steps if isinstance(loop.steps, int) and loop.steps else None
    if known is None:
        raise call.refuse("NATIVE-FORM", "its number of steps is unknown or 0")
    return known
