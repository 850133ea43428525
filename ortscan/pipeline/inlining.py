"""Inlines the model functions that hold what rules change: loops, and nodes that may not stay where they stand.

Works round ORT-CAST-AFTER-TRANSPOSE and ORT-HALVES-AFTER-TRANSPOSE.
"""

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from ortscan.modelio import Inlining, inline_functions, inline_functions_with_loops
from ortscan.ort.sessions import evaluate
from rewrites.base.abilities import Abilities
from rewrites.driver.prepare import has_absent_nodes, has_loops, prepare
from rewrites.driver.recurrent_nodes import may_be_refused
from rewrites.driver.unshielded import holds_recurrent_nodes
from rewrites.graph.context import Context, Options
from rewrites.native.functions import DOMAIN
from rewrites.rule import Rule
from rewrites.tidy.moved_operands import FUSED_PART, functions_with_cast_transposes

__all__ = ["inline_what_rules_change"]


def inline_what_rules_change(model: ir.Model, target: Abilities, rules: Sequence[Rule[Any]], *, runs_plans: bool) -> list[str]:
    """Inline them in place, and return what to tell of it. ``runs_plans``: loops that have a plan stay functions."""
    messages = _said(inline_functions_with_loops(model, stay=DOMAIN if runs_plans else ""), "holds a loop")
    if has_loops(model):
        crossed = functions_with_cast_transposes(model)
        messages += _said(inline_functions(model, lambda function: function in crossed), FUSED_PART)
    if not any(map(holds_recurrent_nodes, model.functions.values())):
        return messages
    # Only in a graph is a node put under an If where a loop that fails before it goes.
    if not has_loops(model) and not _must_be_changed_where_they_stand(model, target, rules):
        return messages
    return messages + _said(inline_functions(model, holds_recurrent_nodes), "holds a recurrent node")


def _must_be_changed_where_they_stand(model: ir.Model, target: Abilities, rules: Sequence[Rule[Any]]) -> bool:
    trial = model.clone()
    inline_functions(trial, holds_recurrent_nodes)
    ctx = Context.of(trial, Options(), evaluate)
    prepare(ctx)
    return may_be_refused(ctx, rules) or has_absent_nodes(trial, target)


def _said(outcome: Inlining, reason: str) -> list[str]:
    messages = [f"inlined the function {name}, which {reason}" for name in outcome.inlined]
    return messages + [f"left the function {name} as it is: {obstacle}" for name, obstacle in outcome.kept]
