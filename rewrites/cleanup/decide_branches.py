"""Replaces each If that has a constant condition by the branch that runs.

y = If(true) then () => (f(x)) else () => (g(x))    ->    y = f(x)

This rule changes the whole model, before the rules for loops.
"""

import onnx_ir as ir

from rewrites.cleanup.constant_branches import constant_branch, inline_constant_branches, is_if
from rewrites.graph.context import Context
from rewrites.graph.walk import all_nodes
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the model has Ifs with constant conditions."""
    if not any(is_if(node) and constant_branch(node, ctx) is not None for node in all_nodes(model.graph)):
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        inline_constant_branches(model.graph, ctx)
        return []

    return Patch("replaced Ifs with constant conditions by one branch", edit)


RULE = Rule("decide-branches", "cleanup", "model", check)
