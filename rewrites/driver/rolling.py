"""Rolls up the unrolled steps of a loop into a Scan, before the rules on loops are tried.

After the rules, ``not_worth_rolling`` finds the Scans that brought no gain.
"""

from collections.abc import Sequence
from typing import Any

from rewrites.base.report import LoopReport, RewriteReport
from rewrites.driver.applying import Applying, try_rule
from rewrites.graph.marks import REPORT
from rewrites.loop_form.written_out.chains import Chain, chains_in, tensors_without_rank
from rewrites.rule import Patch, Rule

__all__ = ["not_worth_rolling", "roll_up_steps"]


def roll_up_steps(applying: Applying, rules: Sequence[Rule[Any]]) -> None:
    """Replace each chain of unrolled steps by a Scan, and add a report on the Scan.

    Skip a chain if ``ctx.written_out`` contains its name.
    """
    ctx = applying.ctx
    seen = set(ctx.written_out)
    for rule in rules:
        while not applying.is_over and _roll_up_next_chain(rule, seen, applying):
            pass
    for value, count in tensors_without_rank(ctx.model.graph) if rules else ():
        message = f"{count} rows of '{value.name}' are read one by one, perhaps by unrolled steps: declare its rank to find these"
        if message not in applying.report.messages:
            applying.report.messages.append(message)


def _roll_up_next_chain(rule: Rule[Chain], seen: set[str], applying: Applying) -> bool:
    ctx = applying.ctx
    for chain in chains_in(ctx.model.graph, ctx.opset):
        where = chain.where
        if where in seen:
            continue
        seen.add(where)
        outcome = try_rule(rule, chain, where, ctx)
        if isinstance(outcome, Patch):
            size = len(chain.packs)
            entry = LoopReport(where, "Scan", chain.steps, size, size)
            for scan in applying.apply(rule, entry, outcome):
                REPORT.put(scan, entry)
            applying.report.loops.append(entry)
            return True
    return False


def not_worth_rolling(report: RewriteReport, rules: Sequence[Rule[Any]]) -> set[str]:
    """Return the names of the chains of steps that should stay unrolled: their Scan brought no gain.

    A Scan brought no gain in one of these cases:

    * It remains in the model, and has no plan for the native library.
    * It was unrolled again.
    * The whole model has at least as many nodes as before all rules.
    """
    rolling = {rule.name for rule in rules if rule.subject == "written-out steps"}
    unrolling = {rule.name for rule in rules if rule.phase == "unroll"}
    rolled = [entry for entry in report.loops if any(fired.rule in rolling for fired in entry.fired)]
    has_no_gain = report.operators_after.total() >= report.operators_before.total()
    return {
        entry.where
        for entry in rolled
        if has_no_gain or entry.fate not in ("removed", "compiled") or any(fired.rule in unrolling for fired in entry.fired)
    }
