"""An If inside the body whose condition is the same in every step: both branches are batched, one of them runs.

    If(c) then () => (Neg(x)) else () => (k)    ->    If(c) then () => (Neg(x')) else () => (k repeated for all steps)

A result carries the steps if it does in one of the branches. A condition that differs between steps is refused.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.batching.bodies import batched_body, body_for_all_steps
from rewrites.batching.call import Call, Refused, Result
from rewrites.batching.table import rule

__all__ = ["nested_if"]

_BRANCHES = ("then_branch", "else_branch")


@rule("If")
def nested_if(call: Call) -> Sequence[Result]:
    """Batch both branches."""
    call.same_each_step(0)
    graphs = [call.node.attributes[name].as_graph() for name in _BRANCHES]
    if any(not isinstance(value.type, ir.TensorType) for value in call.node.outputs):
        raise call.refuse("CONTROL-FLOW", "a result is no tensor")
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
