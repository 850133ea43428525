"""Hands recurrent nodes to ortscan's library, after all else that is done to them."""

from collections.abc import Sequence
from typing import Any

from rewrites.base.not_applicable import NotApplicable
from rewrites.base.report import NodeReport, Reason
from rewrites.driver.asking import ask
from rewrites.driver.recurrent_nodes import Fire
from rewrites.graph.context import Context
from rewrites.loops.paths import with_paths
from rewrites.ops.rnn.recurrent_node import is_recurrent, read
from rewrites.rule import Patch, Rule

__all__ = ["hand_over_cells"]


def hand_over_cells(ctx: Context, rules: Sequence[Rule[Any]], fire: Fire) -> list[NodeReport]:
    """Apply the rules of phase ``native`` on recurrent nodes; report what was done, and what was refused."""
    reports = list[NodeReport]()
    for rule in rules:
        if rule.subject != "recurrent node" or rule.phase != "native":
            continue
        for node, where in [(node, where) for node, where in with_paths(ctx.model.graph) if is_recurrent(node)]:
            view = read(node)
            if isinstance(view, NotApplicable):
                continue
            entry = NodeReport(where, node.op_type)
            outcome = ask(rule, view, where, ctx)
            if isinstance(outcome, Patch):
                if fire(rule, entry, outcome) is None:
                    return reports
                reports.append(entry)
            elif not outcome.silent:
                entry.reasons.append(Reason(rule.name, outcome.code, outcome.detail))
                reports.append(entry)
    return reports
