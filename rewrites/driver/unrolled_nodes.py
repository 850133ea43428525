"""Lets recurrent nodes that a target does not run be loops to unroll."""

from collections.abc import Sequence

from rewrites.analysis.absent_nodes import Absent, absent_nodes
from rewrites.base.not_applicable import NotApplicable
from rewrites.base.report import LoopReport, Reason
from rewrites.driver.applying import Applying
from rewrites.driver.asking import ask
from rewrites.edits.rule import Rule
from rewrites.graph.marks import REPORT
from rewrites.loops import loops_inside_out

__all__ = ["unroll_nodes"]


def unroll_nodes(applying: Applying, rules: Sequence[Rule[Absent]]) -> tuple[int, list[LoopReport]]:
    """Make loops of the nodes; return of how many, and reports on those of which none can be made."""
    ctx, made, refused = applying.ctx, 0, list[LoopReport]()
    if not rules or ctx.options.unroll.steps == 0:
        return 0, refused
    for absent in absent_nodes(ctx):
        entry = LoopReport(absent.where, absent.node.op_type, absent.steps, 1, 1)
        for rule in rules:
            outcome = ask(rule, absent, entry.where, ctx)
            if isinstance(outcome, NotApplicable):
                entry.reasons.append(Reason(rule.name, outcome.code, outcome.detail))
                refused.append(entry)
            elif not applying.is_over:
                applying.apply(rule, entry, outcome)
                made += 1
                applying.report.loops.append(entry)
                for node in loops_inside_out(ctx.model.graph):
                    REPORT.put_new(node, entry)
    return made, refused
