"""Rolls up unrolled steps into Scans before the rules on loops. Afterwards, finds Scans that gained nothing."""

from collections.abc import Sequence
from typing import Any

from rewrites.base.report import LoopReport, RewriteReport
from rewrites.driver.applying import Applying, ask
from rewrites.graph.marks import REPORT
from rewrites.loop_form.written_out.chains import Chain, chains_in, without_rank
from rewrites.rule import Patch, Rule

__all__ = ["not_worth_rolling", "roll_up_steps"]


def roll_up_steps(applying: Applying, rules: Sequence[Rule[Any]]) -> None:
    """Turn unrolled steps into Scans, except the steps named in ``ctx.written_out``. Create a report for each Scan."""
    ctx = applying.ctx
    seen = set(ctx.written_out)
    for rule in rules:
        while not applying.is_over and _roll_one(rule, seen, applying):
            pass
    for value, count in without_rank(ctx.model.graph) if rules else ():
        said = f"{count} rows of '{value.name}' are read one by one, perhaps by unrolled steps: declare its rank to find these"
        if said not in applying.report.messages:
            applying.report.messages.append(said)


def _roll_one(rule: Rule[Chain], seen: set[str], applying: Applying) -> bool:
    ctx = applying.ctx
    for chain in chains_in(ctx.model.graph, ctx.opset):
        where = chain.where
        if where in seen:
            continue
        seen.add(where)
        outcome = ask(rule, chain, where, ctx)
        if isinstance(outcome, Patch):
            size = len(chain.packs)
            entry = LoopReport(where, "Scan", chain.steps, size, size)
            for scan in applying.apply(rule, entry, outcome):
                REPORT.put(scan, entry)
            applying.report.loops.append(entry)
            return True
    return False


def not_worth_rolling(report: RewriteReport, rules: Sequence[Rule[Any]]) -> set[str]:
    """Return the names of the rolled-up steps that should remain unrolled, because rolling them up gained nothing.

    Their Scan remains without a plan or was unrolled again, or the number of nodes did not decrease.
    """
    rolling = {rule.name for rule in rules if rule.subject == "written-out steps"}
    unrolling = {rule.name for rule in rules if rule.phase == "unroll"}
    rolled = [entry for entry in report.loops if any(fired.rule in rolling for fired in entry.fired)]
    in_vain = report.operators_after.total() >= report.operators_before.total()
    return {
        entry.where
        for entry in rolled
        if in_vain or entry.fate not in ("removed", "planned") or any(fired.rule in unrolling for fired in entry.fired)
    }
