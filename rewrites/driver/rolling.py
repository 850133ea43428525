"""Rolls up the unrolled steps of a loop into a Scan, before the rules on loops are tried.

After the rules, ``not_worth_rolling`` finds the Scans that brought no gain.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import onnx_ir as ir

from rewrites.base.report import LoopReport, RewriteReport
from rewrites.driver.applying import Applying, try_rule
from rewrites.graph.context import Context
from rewrites.graph.marks import REPORT
from rewrites.loop_form.prefix_trees.trees import PrefixTree, free_trees, may_have_prefix_trees, prefix_trees_in
from rewrites.loop_form.written_out.chains import Chain, chains_in, may_have_unrolled_steps, tensors_without_rank
from rewrites.rule import Patch, Rule

ROLLED_SUBJECTS = ("written-out steps", "prefix tree")
"""The subjects that become Scans before the rules on loops are tried."""

__all__ = ["ROLLED_SUBJECTS", "may_roll_up", "not_worth_rolling", "roll_up_steps"]


def may_roll_up(model: ir.Model, rules: Sequence[Rule[Any]]) -> bool:
    """Return True if ``rules`` may replace nodes of the main graph by a Scan.

    Shapes need not be inferred yet.
    """
    subjects = {rule.subject for rule in rules}
    has_trees = "prefix tree" in subjects and may_have_prefix_trees(model.graph)
    return has_trees or (not subjects.isdisjoint(ROLLED_SUBJECTS) and may_have_unrolled_steps(model))


def roll_up_steps(applying: Applying, rules: Sequence[Rule[Any]]) -> None:
    """Replace each chain of unrolled steps and each prefix tree by a Scan, and add a report on the Scan.

    Skip a chain or tree if ``ctx.written_out`` contains its name.
    """
    ctx = applying.ctx
    seen = set(ctx.written_out)
    for rule in rules:
        while not applying.is_over and _roll_up_next(rule, seen, applying):
            pass
    for value in free_trees(ctx.model.graph, ctx.opset) if rules else ():
        _say_once(
            applying.report,
            f"slices of '{value.name}' form a tree like that of associative_scan, over a free number of steps: an exporter writes "
            "it for the traced number of steps; with other numbers it may fail or be wrong. Export it with a fixed number of steps",
        )
    for value, count in tensors_without_rank(ctx.model.graph) if rules else ():
        message = f"{count} rows of '{value.name}' are read one by one, perhaps by unrolled steps: declare its rank to find these"
        _say_once(applying.report, message)


def _say_once(report: RewriteReport, message: str) -> None:
    if message not in report.messages:
        report.messages.append(message)


def _roll_up_next(rule: Rule[Any], seen: set[str], applying: Applying) -> bool:
    ctx = applying.ctx
    for subject, size in _subjects(rule, ctx):
        where = subject.where
        if where in seen:
            continue
        seen.add(where)
        outcome = try_rule(rule, subject, where, ctx)
        if isinstance(outcome, Patch):
            tree_nodes = len(subject.nodes()) if isinstance(subject, PrefixTree) else 0
            entry = LoopReport(where, "Scan", subject.steps, size, size, tree_nodes=tree_nodes)
            for scan in applying.apply(rule, entry, outcome):
                REPORT.put(scan, entry)
            applying.report.loops.append(entry)
            return True
        if not outcome.silent:
            _say_once(applying.report, f"{where} stay as they are ({outcome.code}): {outcome.detail}")
    return False


def _subjects(rule: Rule[Any], ctx: Context) -> Iterator[tuple[Chain | PrefixTree, int]]:
    """Yield the subjects of ``rule``, each with the number of nodes of one step."""
    if rule.subject == "prefix tree":
        for tree in prefix_trees_in(ctx.model.graph, ctx.opset, ctx.options.fast_math):
            yield tree, sum(len(tree.terms(source)) for source in tree.states)
    else:
        for chain in chains_in(ctx.model.graph, ctx.opset):
            yield chain, len(chain.packs)


def not_worth_rolling(report: RewriteReport, rules: Sequence[Rule[Any]]) -> set[str]:
    """Return the names of the chains of steps that should stay unrolled: their Scan brought no gain.

    A Scan brought no gain in one of these cases:

    * It remains in the model, and has no plan for the native library.
    * It was unrolled again.
    * The whole model has at least as many nodes as before all rules.
    * The model has lost fewer nodes than half of the prefix tree. Otherwise blocks of a cumulative maximum would replace a doubling
      that is faster.
    """
    rolling = {rule.name for rule in rules if rule.subject in ROLLED_SUBJECTS}
    unrolling = {rule.name for rule in rules if rule.phase == "unroll"}
    rolled = [entry for entry in report.loops if any(fired.rule in rolling for fired in entry.fired)]
    saved = report.operators_before.total() - report.operators_after.total()
    return {
        entry.where
        for entry in rolled
        if saved < max(1, entry.tree_nodes / 2)
        or entry.fate not in ("removed", "compiled")
        or any(fired.rule in unrolling for fired in entry.fired)
    }
