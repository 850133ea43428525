"""Applies the rules on recurrent nodes (RNN, GRU, LSTM).

The rules repair nodes that onnxruntime would refuse, change directions, or replace nodes by operators of ortscan's own library.
"""

from collections.abc import Callable, Sequence, Set
from typing import Any

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.base.report import NodeReport, Reason
from rewrites.cleanup.cleanup import remove_unread
from rewrites.direction.pairs import find_pairs, may_be_reversed, may_have_pairs
from rewrites.driver.applying import try_rule
from rewrites.graph.context import Context
from rewrites.graph.marks import WAS_REFUSED
from rewrites.graph.walk import all_nodes
from rewrites.loops.view import nodes_with_paths
from rewrites.ops.rnn.recurrent_node import RecurrentNode, is_recurrent, read
from rewrites.registry import DEFAULT_NODE_RULES, GUARD_RECURRENCE, NODE_RULES
from rewrites.rule import NOTHING_HERE, Patch, Rule

__all__ = [
    "ApplyPatch",
    "change_recurrent_nodes",
    "join_directions",
    "model_may_need_rule",
    "node_may_need_rule",
    "replace_by_library_cells",
]


ApplyPatch = Callable[[Rule[Any], NodeReport, Patch], Sequence[ir.Node] | None]
"""Applies a patch and returns the nodes that replace the subject, or None if no more patches may be applied."""

_PATCHES_PER_NODE = 40


def model_may_need_rule(ctx: Context, rules: Sequence[Rule[Any]] = DEFAULT_NODE_RULES) -> bool:
    """Return True if one of ``rules`` may apply to a recurrent node of the model.

    If shapes are not inferred yet, the result may be True although no rule applies.
    """
    return any(is_recurrent(node) and node_may_need_rule(node, ctx, rules) for node in all_nodes(ctx.model.graph))


def node_may_need_rule(node: ir.Node, ctx: Context, rules: Sequence[Rule[Any]] = DEFAULT_NODE_RULES) -> bool:
    """Return True if one of ``rules`` may apply to the recurrent ``node``."""
    view = read(node)
    if isinstance(view, NotApplicable) or view.dtype is None:
        return True
    lengths = view.input("sequence_lens")
    if lengths is not None and (lengths.dtype is None or lengths.shape is None):
        return True
    return any(rule.check(view, ctx) is not NOTHING_HERE for rule in NODE_RULES if rule in rules)


def change_recurrent_nodes(
    ctx: Context, rules: Sequence[Rule[Any]], apply_patch: ApplyPatch, *, only: Set[ir.Node] | None = None
) -> list[NodeReport]:
    """Apply to each recurrent node those of ``rules`` that are node rules (``NODE_RULES``).

    Return a report on each changed node, and on each node for which a rule gave a reason not to apply.

    Args:
        ctx: The context of the model.
        rules: The rules in use.
        apply_patch: A function that applies a patch.
        only: The nodes to try; None for all recurrent nodes.
    """
    reports = []
    recurrent = [(node, where) for node, where in nodes_with_paths(ctx.model.graph) if is_recurrent(node)]
    for node, where in recurrent:
        if only is not None and node not in only:
            continue
        entry = NodeReport(where, node.op_type)
        _apply_to_node(node, ctx, [rule for rule in NODE_RULES if rule in rules], apply_patch, entry)
        if entry.fired or entry.reasons:
            reports.append(entry)
    return reports


def _apply_to_node(node: ir.Node, ctx: Context, rules: Sequence[Rule[Any]], apply_patch: ApplyPatch, entry: NodeReport) -> None:
    pending: list[ir.Node] = [node]
    for _ in range(_PATCHES_PER_NODE):
        if not pending:
            return
        current = pending.pop()
        view = read(current)
        if isinstance(view, NotApplicable):
            entry.reasons = [Reason(NODE_RULES[0].name, view.code, view.detail)]
            return
        first = _first_patch(view, ctx, rules, entry)
        if first is None:
            continue
        rule, patch = first
        replaced = apply_patch(rule, entry, patch)
        if replaced is None:
            return
        for new in replaced:
            if rule is not GUARD_RECURRENCE:
                WAS_REFUSED.put(new, True)
        pending.extend(replaced)
    entry.reasons = [Reason("engine", "RULE-LIMIT", f"the rules still fire after {_PATCHES_PER_NODE} patches")]


def _first_patch(
    view: RecurrentNode, ctx: Context, rules: Sequence[Rule[Any]], entry: NodeReport
) -> tuple[Rule[RecurrentNode], Patch] | None:
    entry.reasons = []
    for rule in rules:
        outcome = try_rule(rule, view, entry.where, ctx)
        if isinstance(outcome, Patch):
            return rule, outcome
        if not outcome.silent:
            entry.reasons.append(Reason(rule.name, outcome.code, outcome.detail))
    return None


def join_directions(ctx: Context, rules: Sequence[Rule[Any]], apply_patch: ApplyPatch) -> list[NodeReport]:
    """Apply those of ``rules`` that reverse a recurrent node, or join a forward and a reverse node.

    Return a report on each changed node, and on each node for which a rule gave a reason not to apply.
    """
    reports = [
        report
        for rule in rules
        if rule.subject == "recurrent node" and rule.phase == "direction"
        for report in _reverse_nodes(rule, ctx, apply_patch)
    ]
    joining = [rule for rule in rules if rule.subject == "pair"]
    if not joining or not may_have_pairs(ctx.model.graph):
        return reports
    (rule,) = joining
    remove_unread(ctx.model.graph)
    while True:
        left, fired = list[NodeReport](), False
        for pair in find_pairs(ctx.model.graph, ctx.opset):
            node = pair.forward.node
            if fired and pair.guards is not None:  # the last patch may have merged the Ifs, so find pairs again
                break
            entry = NodeReport(_path_of(node, ctx), node.op_type)
            outcome = try_rule(rule, pair, entry.where, ctx)
            if isinstance(outcome, Patch):
                if apply_patch(rule, entry, outcome) is None:
                    return reports
                reports.append(entry)
                fired = True
            elif not outcome.silent:
                entry.reasons.append(Reason(rule.name, outcome.code, outcome.detail))
                left.append(entry)
        if not fired:
            return reports + left


def _reverse_nodes(rule: Rule[RecurrentNode], ctx: Context, apply_patch: ApplyPatch) -> list[NodeReport]:
    reports = list[NodeReport]()
    nodes = [node for node in all_nodes(ctx.model.graph) if is_recurrent(node) and may_be_reversed(node)]
    for node in nodes:
        view = read(node)
        if isinstance(view, NotApplicable):
            continue
        entry = NodeReport(_path_of(node, ctx), node.op_type)
        outcome = try_rule(rule, view, entry.where, ctx)
        if isinstance(outcome, Patch):
            if apply_patch(rule, entry, outcome) is None:
                break
            reports.append(entry)
        elif not outcome.silent:
            entry.reasons.append(Reason(rule.name, outcome.code, outcome.detail))
            reports.append(entry)
    return reports


def _path_of(node: ir.Node, ctx: Context) -> str:
    return next((where for other, where in nodes_with_paths(ctx.model.graph) if other is node), "main")


def replace_by_library_cells(ctx: Context, rules: Sequence[Rule[Any]], apply_patch: ApplyPatch) -> list[NodeReport]:
    """Apply those of ``rules`` that replace recurrent nodes by operators of ortscan's library.

    Return a report on each changed node, and on each node for which a rule gave a reason not to apply.
    """
    reports = list[NodeReport]()
    for rule in rules:
        if rule.subject != "recurrent node" or rule.phase != "native":
            continue
        for node, where in [(node, where) for node, where in nodes_with_paths(ctx.model.graph) if is_recurrent(node)]:
            view = read(node)
            if isinstance(view, NotApplicable):
                continue
            entry = NodeReport(where, node.op_type)
            outcome = try_rule(rule, view, where, ctx)
            if isinstance(outcome, Patch):
                if apply_patch(rule, entry, outcome) is None:
                    return reports
                reports.append(entry)
            elif not outcome.silent:
                entry.reasons.append(Reason(rule.name, outcome.code, outcome.detail))
                reports.append(entry)
    return reports
