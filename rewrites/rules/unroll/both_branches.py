"""Where the target has no If, both branches run and the condition chooses between what they give.

    y = If(c) then () => (f(x)) else () => (g(x))    ->    y = Where(c, f(x), g(x))

Conditions: no operator in either branch can fail, whatever it is given, nor draws random numbers; each result has the same known
sizes in both; both branches run on zeros. An If inside a loop that is left stays: it runs where the loop runs.
"""

import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic
from rewrites.analysis.speculation import may_fail_unwanted
from rewrites.edits.cleanup.cleanup import clean_up
from rewrites.edits.cleanup.constant_branches import is_if
from rewrites.edits.unroll.trial_run import runs_on_zeros
from rewrites.graph.context import Context
from rewrites.graph.moving import lift_initializers, move_before, remove_nodes
from rewrites.graph.replace import replace_value
from rewrites.graph.values import rank_of, static_dims
from rewrites.graph.walk import node_graphs
from rewrites.loops import is_loop
from rewrites.ops.versions import reshape, where

__all__ = ["run_both_branches"]

_BRANCHES = ("then_branch", "else_branch")
_WHERE_SINCE = 9


def run_both_branches(ctx: Context) -> tuple[int, list[str]]:
    """Do so all over the model; gives of how many Ifs, and what to tell of it."""
    target = ctx.options.target
    if "If" in target.control_flow or ctx.opset < _WHERE_SINCE:
        return 0, []
    done, left = _in_graph(ctx.model.graph, ctx)
    if done:
        clean_up(ctx.model.graph, list(ctx.model.graph), ctx)
    said = [f"{target.name} has no If: of {_count(done)} both branches run, and the condition chooses"] if done else []
    return done, said + [f"{target.name} has no If: {reason}, so it falls back to onnxruntime's CPU" for reason in left]


def _in_graph(graph: ir.Graph, ctx: Context) -> tuple[int, list[str]]:
    done, left = 0, list[str]()
    for node in list(graph):
        if is_loop(node):
            continue
        for nested in node_graphs(node):
            more, reasons = _in_graph(nested, ctx)
            done, left = done + more, left + reasons
        if is_if(node):
            reason = _obstacle(node, ctx)
            if reason is None:
                _flatten(node, ctx)
                done += 1
            else:
                left.append(f"If '{node.name or node.outputs[0].name}' stays, since {reason}")
    return done, left


def _obstacle(node: ir.Node, ctx: Context) -> str | None:
    branches = [node.attributes[name].as_graph() for name in _BRANCHES]
    for branch in branches:
        culprit = next((inner for inner in branch if not is_deterministic(inner)), None) or may_fail_unwanted(branch)
        if culprit is not None:
            return f"{culprit.op_type} '{culprit.name or culprit.outputs[0].name}' might fail in a branch that is not wanted"
    for one, other in zip(*(branch.outputs for branch in branches), strict=True):
        if not isinstance(one.type, ir.TensorType) or one.dtype != other.dtype:
            return f"its result '{one.name}' is no tensor"
        if static_dims(one) is None or static_dims(one) != static_dims(other):
            return f"the sizes of its results '{one.name}' and '{other.name}' differ, or are not known"
    for branch in branches:
        if not runs_on_zeros(branch, ctx):
            return f"its branch '{branch.name}' does not run by itself, or is too large to try"
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
    chosen = [where(build, condition, one, other) for one, other in zip(*results, strict=True)]
    build.insert_before(node)
    for old, new in zip(node.outputs, chosen, strict=True):
        replace_value(old, new, ctx.names)
    remove_nodes([node])


def _count(number: int) -> str:
    return "one If" if number == 1 else f"{number} Ifs"
