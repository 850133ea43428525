"""Applies rules to a complete model, or to its Ifs.

Each change is recorded as a numbered patch in ``ctx.changes``. The caller can skip a rule by its name.
"""

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.base.report import Fired
from rewrites.cleanup.cleanup import clean_up
from rewrites.cleanup.constant_branches import is_if
from rewrites.driver.applying import ask
from rewrites.graph.context import Context
from rewrites.graph.walk import node_graphs
from rewrites.loops import is_loop
from rewrites.loops.parts import label
from rewrites.registry import FLATTEN_IFS
from rewrites.rule import Patch, Rule

__all__ = ["change_model", "flatten_ifs"]


def change_model(rule: Rule[ir.Model], ctx: Context) -> bool:
    """Apply ``rule`` to the model. Return True if it changed the model."""
    outcome = None if rule.name in ctx.left_out else ask(rule, ctx.model, "main", ctx)
    if not isinstance(outcome, Patch):
        return False
    _make(rule.name, "main", outcome, ctx)
    return True


def flatten_ifs(ctx: Context) -> tuple[int, list[str]]:
    """Replace each If by the nodes of both branches and a choice between their results.

    This is done for targets that do not support If. Return the number of replaced Ifs, and messages on the replaced and the
    remaining Ifs.
    """
    if FLATTEN_IFS.name in ctx.left_out:
        return 0, []
    done, left = _in_graph(ctx.model.graph, "main", ctx)
    if done:
        clean_up(ctx.model.graph, list(ctx.model.graph), ctx)
    name, count = ctx.options.target.name, "one If" if done == 1 else f"{done} Ifs"
    said = [f"{name} has no If: of {count} both branches run, and the condition chooses"] if done else []
    return done, said + [f"{name} has no If: {reason}, so it falls back to onnxruntime's CPU" for reason in left]


def _in_graph(graph: ir.Graph, path: str, ctx: Context) -> tuple[int, list[str]]:
    done, left = 0, list[str]()
    for node in list(graph):
        if is_loop(node):
            continue
        here = f"{path}/{node.op_type} {label(node)}"
        for nested in node_graphs(node):
            more, reasons = _in_graph(nested, here, ctx)
            done, left = done + more, left + reasons
        if is_if(node):
            outcome = ask(FLATTEN_IFS, node, here, ctx)
            if isinstance(outcome, Patch):
                _make(FLATTEN_IFS.name, here, outcome, ctx)
                done += 1
            elif isinstance(outcome, NotApplicable) and not outcome.silent:
                left.append(outcome.detail)
    return done, left


def _make(rule: str, where: str, patch: Patch, ctx: Context) -> None:
    with ctx.vetoes.blaming(rule, where):
        patch.edit()
    ctx.changes.append(Fired(len(ctx.changes) + 1, rule, where, patch.what, patch.outcome))
