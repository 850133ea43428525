"""An If inside the body.

If the condition is the same in every step, both branches are batched, and the If selects one of them:

    If(c) then () => (Neg(x)) else () => (k)    ->    If(c) then () => (Neg(x')) else () => (k repeated for all steps)

If the condition differs between steps, both branches run for all steps, and ``Where`` selects the results of each step. A branch
then also runs for steps that did not run it before, and must not fail for them. Therefore all sizes must be known, and the branch
must contain no operator that fails for some elements.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.analysis.speculation import node_failing_if_run
from rewrites.batching.call import Call, Refused, Result
from rewrites.batching.emission import Emission
from rewrites.batching.nested_loops import batched_body, body_for_all_steps
from rewrites.batching.table import rule
from rewrites.graph.values import static_dims
from rewrites.ops.versions import squeeze, unsqueeze, where

__all__ = ["nested_if"]

_BRANCHES = ("then_branch", "else_branch")


@rule("If")
def nested_if(call: Call) -> Sequence[Result]:
    """Batch both branches.

    A result is batched if one branch returns a batched value for it, or if the condition is batched.
    """
    graphs = [call.node.attributes[name].as_graph() for name in _BRANCHES]
    if any(not isinstance(value.type, ir.TensorType) for value in call.node.outputs):
        raise call.refuse("CONTROL-FLOW", "a result is not a tensor")
    return _select_per_step(call, graphs) if call.batched(0) else _if_over_all_steps(call, graphs)


def _if_over_all_steps(call: Call, graphs: Sequence[ir.Graph]) -> list[Result]:
    """Emit an If of the batched branches. The condition is the same in every step."""
    _, then_part = body_for_all_steps(call, graphs[0], [])
    try:
        _, else_part = body_for_all_steps(call, graphs[1], [])
    except Refused:
        then_part.build.discard()
        raise
    parts = [then_part, else_part]
    varies = [
        any(part.get(value).batched for part, value in zip(parts, results, strict=True))
        for results in zip(*(graph.outputs for graph in graphs), strict=True)
    ]
    branches = [
        ir.AttrGraph(name, batched_body(part, [], list(zip(graph.outputs, varies, strict=True))))
        for name, part, graph in zip(_BRANCHES, parts, graphs, strict=True)
    ]
    values = call.build.node("If", [call.value(0)], len(varies), branches, hint=call.node.name)
    return [Result(value, flag) for value, flag in zip(values, varies, strict=True)]


def _select_per_step(call: Call, graphs: Sequence[ir.Graph]) -> list[Result]:
    """Emit the nodes of both branches for all steps, and select the results of each step with Where."""
    for graph in graphs:
        _check_harmless(call, graph)
    parts = []
    for graph in graphs:
        emission = Emission(graph, call.build, call.steps, captured=call.captured, may_be_empty=call.may_be_empty)
        reason = emission.add_all(graph)
        if reason is not None:
            raise Refused(reason)
        parts.append(emission)
    b, results = call.build, []
    condition = squeeze(b, call.operand(0).value, range(1, 1 + call.rank(0)))
    for then_value, else_value in zip(*(graph.outputs for graph in graphs), strict=True):
        dims = static_dims(then_value)
        if dims is None or dims != static_dims(else_value):
            raise call.refuse(
                "BATCHED-STRUCTURE", f"{then_value.name!r} and {else_value.name!r} differ in shape, or their sizes are not known"
            )
        values = parts[0].stack_of(then_value), parts[1].stack_of(else_value)
        results.append(Result(where(b, unsqueeze(b, condition, range(1, 1 + len(dims))), *values)))
    return results


def _check_harmless(call: Call, graph: ir.Graph) -> None:
    """Raise Refused if the branch ``graph`` may fail for a step that did not run it before."""
    culprit = node_failing_if_run(graph)
    if culprit is not None:
        detail = f"the condition differs between steps, and {culprit.op_type} might fail in a step that does not need it"
        raise call.refuse("BATCHED-CONDITION", detail)
