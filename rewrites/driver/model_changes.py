"""Applies rules to a complete model, or to its Ifs.

Each change is recorded as a numbered patch in ``ctx.changes``. The caller can skip a rule by its name.
"""

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.base.report import Fired
from rewrites.cleanup.cleanup import clean_up
from rewrites.cleanup.constant_branches import is_if
from rewrites.driver.applying import try_rule
from rewrites.graph.context import Context
from rewrites.graph.walk import node_graphs
from rewrites.loops import is_loop
from rewrites.loops.parts import label
from rewrites.registry import FLATTEN_IFS
from rewrites.rule import Patch, Rule

__all__ = ["change_model", "flatten_ifs"]


def change_model(rule: Rule[ir.Model], ctx: Context) -> bool:
    """Apply ``rule`` to the model. Return True if it changed the model."""
    outcome = None if rule.name in ctx.left_out else try_rule(rule, ctx.model, "main", ctx)
    if not isinstance(outcome, Patch):
        return False
    _apply_and_record(rule.name, "main", outcome, ctx)
    return True


def flatten_ifs(ctx: Context) -> tuple[int, list[str]]:
    """Replace each If by the nodes of both branches and a selection of their results.

    This is done for targets that do not support If. Return a pair: the number of replaced Ifs, and messages on the replaced and
    the remaining Ifs.
    """
    if FLATTEN_IFS.name in ctx.left_out:
        return 0, []
    flattened, obstacles = _flatten_in_graph(ctx.model.graph, "main", ctx)
    if flattened:
        clean_up(ctx.model.graph, list(ctx.model.graph), ctx)
    name, count = ctx.options.target.name, "one If" if flattened == 1 else f"{flattened} Ifs"
    messages = [f"{name} has no If: of {count} both branches run, and the condition chooses"] if flattened else []
    return flattened, messages + [f"{name} has no If: {reason}, so it falls back to onnxruntime's CPU" for reason in obstacles]


def _flatten_in_graph(graph: ir.Graph, path: str, ctx: Context) -> tuple[int, list[str]]:
    flattened, obstacles = 0, list[str]()
    for node in list(graph):
        if is_loop(node):
            continue
        here = f"{path}/{node.op_type} {label(node)}"
        for nested in node_graphs(node):
            inner_flattened, inner_obstacles = _flatten_in_graph(nested, here, ctx)
            flattened, obstacles = flattened + inner_flattened, obstacles + inner_obstacles
        if is_if(node):
            outcome = try_rule(FLATTEN_IFS, node, here, ctx)
            if isinstance(outcome, Patch):
                _apply_and_record(FLATTEN_IFS.name, here, outcome, ctx)
                flattened += 1
            elif isinstance(outcome, NotApplicable) and not outcome.silent:
                obstacles.append(outcome.detail)
    return flattened, obstacles


def _apply_and_record(rule: str, where: str, patch: Patch, ctx: Context) -> None:
    with ctx.vetoes.blaming(rule, where):
        patch.edit()
    ctx.changes.append(Fired(len(ctx.changes) + 1, rule, where, patch.what, patch.outcome))
