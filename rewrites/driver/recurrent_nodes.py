"""Applies the rules on recurrent nodes to every RNN, GRU and LSTM of a model, in bodies and branches too."""

from collections.abc import Callable, Sequence, Set
from typing import Any

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.base.report import NodeReport, Reason
from rewrites.driver.asking import ask
from rewrites.graph.context import Context
from rewrites.graph.marks import WAS_REFUSED
from rewrites.graph.walk import all_nodes
from rewrites.loops.paths import with_paths
from rewrites.ops.rnn.recurrent_node import RecurrentNode, is_recurrent, read
from rewrites.registry import DEFAULT_NODE_RULES, GUARD_RECURRENCE, NODE_RULES
from rewrites.rule import NOTHING_HERE, Patch, Rule

__all__ = ["Fire", "change_recurrent_nodes", "may_be_refused", "needs_rule"]

Fire = Callable[[Rule[Any], NodeReport, Patch], Sequence[ir.Node] | None]
"""Makes the change of a rule and returns the nodes that stand in the node's place; None where no more changes are to be made."""

_PATCHES_PER_NODE = 40


def may_be_refused(ctx: Context, rules: Sequence[Rule[Any]] = DEFAULT_NODE_RULES) -> bool:
    """Whether some recurrent node may need one of ``rules``. Before inference it may say so needlessly, but never the contrary."""
    return any(is_recurrent(node) and needs_rule(node, ctx, rules) for node in all_nodes(ctx.model.graph))


def needs_rule(node: ir.Node, ctx: Context, rules: Sequence[Rule[Any]] = DEFAULT_NODE_RULES) -> bool:
    """Whether a recurrent node may need one of ``rules``: by default those that are used unasked."""
    view = read(node)
    if isinstance(view, NotApplicable) or view.dtype is None:
        return True
    lengths = view.input("sequence_lens")
    if lengths is not None and (lengths.dtype is None or lengths.shape is None):
        return True
    return any(rule.check(view, ctx) is not NOTHING_HERE for rule in NODE_RULES if rule in rules)


def change_recurrent_nodes(
    ctx: Context, rules: Sequence[Rule[Any]], fire: Fire, *, only: Set[ir.Node] | None = None
) -> list[NodeReport]:
    """Apply ``rules`` to all recurrent nodes, or ``only`` some, and report those that something was done to, or refused."""
    reports = []
    recurrent = [(node, where) for node, where in with_paths(ctx.model.graph) if is_recurrent(node)]
    for node, where in recurrent:
        if only is not None and node not in only:
            continue
        entry = NodeReport(where, node.op_type)
        _settle(node, ctx, [rule for rule in NODE_RULES if rule in rules], fire, entry)
        if entry.fired or entry.reasons:
            reports.append(entry)
    return reports


def _settle(node: ir.Node, ctx: Context, rules: Sequence[Rule[Any]], fire: Fire, entry: NodeReport) -> None:
    pending: list[ir.Node] = [node]
    for _ in range(_PATCHES_PER_NODE):
        if not pending:
            return
        current = pending.pop()
        view = read(current)
        if isinstance(view, NotApplicable):
            entry.reasons = [Reason(NODE_RULES[0].name, view.code, view.detail)]
            return
        found = _first_patch(view, ctx, rules, entry)
        if found is None:
            continue
        rule, patch = found
        replaced = fire(rule, entry, patch)
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
        outcome = ask(rule, view, entry.where, ctx)
        if isinstance(outcome, Patch):
            return rule, outcome
        if not outcome.silent:
            entry.reasons.append(Reason(rule.name, outcome.code, outcome.detail))
    return None
