"""Applies the rules on directions of recurrent nodes all over a model."""

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.base.report import NodeReport, Reason
from rewrites.cleanup.unread import drop_unread
from rewrites.direction.pairs import find_pairs, may_have_pairs
from rewrites.direction.reversing import may_be_reversed
from rewrites.driver.asking import ask
from rewrites.driver.recurrent_nodes import Fire
from rewrites.graph.context import Context
from rewrites.graph.walk import all_nodes
from rewrites.loops.paths import with_paths
from rewrites.ops.rnn.recurrent_node import RecurrentNode, is_recurrent, read
from rewrites.rule import Patch, Rule

__all__ = ["join_directions"]


def join_directions(ctx: Context, rules: Sequence[Rule[Any]], fire: Fire) -> list[NodeReport]:
    """Reverse nodes and make them bidirectional where ``rules`` has the rules; report what was done, and pairs that are left."""
    reports = [
        report
        for rule in rules
        if rule.subject == "recurrent node" and rule.phase == "direction"
        for report in _turn(rule, ctx, fire)
    ]
    joining = [rule for rule in rules if rule.subject == "pair"]
    if not joining or not may_have_pairs(ctx.model.graph):
        return reports
    (rule,) = joining
    drop_unread(ctx.model.graph)
    while True:
        left, fired = list[NodeReport](), False
        for pair in find_pairs(ctx.model.graph, ctx.opset):
            node = pair.forward.node
            if fired and pair.guards is not None:  # an If may have become part of another
                break
            entry = NodeReport(_where(node, ctx), node.op_type)
            outcome = ask(rule, pair, entry.where, ctx)
            if isinstance(outcome, Patch):
                if fire(rule, entry, outcome) is None:
                    return reports
                reports.append(entry)
                fired = True
            elif not outcome.silent:
                entry.reasons.append(Reason(rule.name, outcome.code, outcome.detail))
                left.append(entry)
        if not fired:
            return reports + left


def _turn(rule: Rule[RecurrentNode], ctx: Context, fire: Fire) -> list[NodeReport]:
    reports = list[NodeReport]()
    nodes = [node for node in all_nodes(ctx.model.graph) if is_recurrent(node) and may_be_reversed(node)]
    for node in nodes:
        view = read(node)
        if isinstance(view, NotApplicable):
            continue
        entry = NodeReport(_where(node, ctx), node.op_type)
        outcome = ask(rule, view, entry.where, ctx)
        if isinstance(outcome, Patch):
            if fire(rule, entry, outcome) is None:
                break
            reports.append(entry)
        elif not outcome.silent:
            entry.reasons.append(Reason(rule.name, outcome.code, outcome.detail))
            reports.append(entry)
    return reports


def _where(wanted: ir.Node, ctx: Context) -> str:
    return next((where for node, where in with_paths(ctx.model.graph) if node is wanted), "main")
