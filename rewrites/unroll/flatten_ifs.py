"""Runs both branches of an If and selects results by the condition if the target has no If.

    y = If(c) then () => (f(x)) else () => (g(x))    ->    y = Where(c, f(x), g(x))

Conditions: No operator of a branch can fail or draws random numbers. Each result has the same known sizes in both branches. Trial
runs of both branches on zeros succeed. An If inside a loop that remains stays as it is, because a runtime that runs the loop also
runs the If.
"""

import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic
from rewrites.analysis.speculation import node_failing_if_run, runs_on_zeros
from rewrites.base import since
from rewrites.graph.context import Context
from rewrites.graph.replace import lift_initializers, move_before, remove_nodes, replace_value
from rewrites.graph.values import rank_of, static_dims
from rewrites.ops.versions import reshape, where
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_BRANCHES = ("then_branch", "else_branch")


def check(node: ir.Node, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if both branches of an If may run and have results of the same type and sizes."""
    if "If" in ctx.options.target.control_flow or ctx.opset < since.WHERE:
        return NOTHING_HERE
    reason = _obstacle(node, ctx)
    if reason is not None:
        return NotApplicable("IF-BRANCHES", f"If '{node.name or node.outputs[0].name}' stays, since {reason}")

    def edit() -> list[ir.Node]:
        _flatten(node, ctx)
        return []

    return Patch("runs both branches, and the condition chooses between their results", edit)


def _obstacle(node: ir.Node, ctx: Context) -> str | None:
    branches = [node.attributes[name].as_graph() for name in _BRANCHES]
    for branch in branches:
        culprit = next((inner for inner in branch if not is_deterministic(inner)), None) or node_failing_if_run(branch)
        if culprit is not None:
            return f"{culprit.op_type} '{culprit.name or culprit.outputs[0].name}' might fail in a branch that the If does not run"
    for then, otherwise in zip(*(branch.outputs for branch in branches), strict=True):
        if not isinstance(then.type, ir.TensorType) or then.dtype != otherwise.dtype:
            return f"its result '{then.name}' is not a tensor"
        if static_dims(then) is None or static_dims(then) != static_dims(otherwise):
            return f"the sizes of its results '{then.name}' and '{otherwise.name}' differ, or are not known"
    for branch in branches:
        if not runs_on_zeros(branch, ctx):
            return f"its branch '{branch.name}' does not run on its own, or is too large to try"
    return None


def _flatten(node: ir.Node, ctx: Context) -> None:
    results: list[list[ir.Value]] = []
    for name in _BRANCHES:
        branch = node.attributes[name].as_graph()
        results.append(list(branch.outputs))
        branch.outputs[:] = []
        lift_initializers(branch, ctx.model.graph, ctx.names)
        move_before(node, list(branch), ctx.names)
    build = ctx.builder()
    condition = node.inputs[0]
    assert condition is not None
    if rank_of(condition) != 0:
        condition = reshape(build, condition, [])
    chosen = [where(build, condition, then, otherwise) for then, otherwise in zip(*results, strict=True)]
    build.insert_before(node)
    for old, new in zip(node.outputs, chosen, strict=True):
        replace_value(old, new, ctx.names)
    remove_nodes([node])


RULE = Rule("flatten-ifs", "unroll", "If", check)
