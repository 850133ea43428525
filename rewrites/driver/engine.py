"""Applies rules to the recurrent nodes and the loops of a model until no rule applies."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.base.report import LoopReport, Reason, RewriteReport
from rewrites.driver.applying import Applying, try_rule
from rewrites.driver.loop_engine import LoopEngine
from rewrites.driver.loop_reports import close_reports, report_new_loops, report_recurrent_nodes, report_remaining_nodes
from rewrites.driver.recurrent_nodes import change_recurrent_nodes, join_directions, replace_by_library_cells
from rewrites.driver.rolling import ROLLED_SUBJECTS, roll_up_steps
from rewrites.driver.unshielded import CrashCandidates
from rewrites.graph.context import Context
from rewrites.graph.marks import REPORT
from rewrites.graph.walk import all_nodes
from rewrites.loops import loops_in
from rewrites.recurrent_nodes.absent_nodes import Absent, absent_nodes
from rewrites.rule import Rule

__all__ = ["count_operators", "rewrite"]

_SWEEPS = 100
_MOST_INFERENCES = 3
_Remaining = tuple[LoopReport, Sequence[Reason]]
"""The report of a recurrent node that remains, and the reasons why it remains."""


def rewrite(
    ctx: Context,
    rules: Sequence[Rule[Any]],
    *,
    stop_after: int | None = None,
    debug: bool = False,
    progress: Callable[[int, int], None] | None = None,
    clean: Callable[[Context], object] | None = None,
    learn: Callable[[Context], bool] | None = None,
) -> RewriteReport:
    """Apply ``rules`` to all loops of the model in place, inner loops first, and return a report.

    Args:
        ctx: The context of the model.
        rules: The rules, in the order in which they are tried.
        stop_after: The largest number of patches to apply; None for any number.
        debug: Check the invariants after each patch.
        progress: Called in the first sweep after each loop, with the number of loops done and the number of all loops.
        clean: A function that cleans up the model. Called after unrolled steps are rolled up.
        learn: A function that infers shapes again. Called when no rule applies any more. If it returns True, the rules are tried
            again.

    Raises:
        MalformedLoop: A loop is invalid.
    """
    ctx.rules = rules
    report = RewriteReport(operators_before=count_operators(ctx.model.graph), opset=ctx.opset)
    applying = Applying(ctx, report, stop_after, debug)
    crash_candidates = CrashCandidates.of(ctx.model.graph)
    rolling = [rule for rule in rules if rule.subject in ROLLED_SUBJECTS]
    roll_up_steps(applying, rolling)
    if clean is not None:
        clean(ctx)
        roll_up_steps(applying, rolling)
    report.nodes = change_recurrent_nodes(ctx, rules, applying.change_node)
    report_recurrent_nodes(ctx)
    on_loops = [rule for rule in rules if rule.subject == "loop"]
    loops = LoopEngine(applying, [rule for rule in on_loops if rule.phase != "native"])
    remaining_nodes = _apply_until_none_fires(
        applying, loops, [rule for rule in rules if rule.subject == "absent node"], progress, learn
    )
    native = LoopEngine(applying, [rule for rule in on_loops if rule.phase == "native"])
    native.apply_outer_first()
    close_reports(ctx, report, loops.prevent_new_crashes(), applying.unrolled)
    report_remaining_nodes(report, remaining_nodes)
    report.nodes += crash_candidates.guard_exposed(ctx, applying.change_node)
    report.pairs = join_directions(ctx, rules, applying.change_node)
    report.cells = replace_by_library_cells(ctx, rules, applying.change_node)
    report.operators_after = count_operators(ctx.model.graph)
    return report


def count_operators(graph: ir.Graph) -> Counter[str]:
    """Count the nodes of each operator, including those in bodies."""
    return Counter(node.op_type if not node.domain else f"{node.domain}.{node.op_type}" for node in all_nodes(graph))


def _apply_until_none_fires(
    applying: Applying,
    engine: LoopEngine,
    on_absent: Sequence[Rule[Any]],
    progress: Callable[[int, int], None] | None,
    learn: Callable[[Context], bool] | None,
) -> list[_Remaining]:
    """Apply the rules of ``engine`` and the rules ``on_absent`` until none applies.

    Return each recurrent node that remains in the model although the target does not support it.

    Args:
        applying: Applies the patches.
        engine: Applies the rules on loops.
        on_absent: The rules that turn recurrent nodes that the target does not support into loops.
        progress: As in ``rewrite``.
        learn: As in ``rewrite``.
    """
    ctx, report = applying.ctx, applying.report
    loops = engine.repair(report_new_loops(ctx, report))
    patches_when_inferred = inferences = 0
    for sweep in range(_SWEEPS):
        fired = len(report.patches)
        loops = engine.sweep(loops, progress if sweep == 0 else None)
        if len(report.patches) > fired:
            continue
        unrolled, remaining_nodes = _unroll_nodes(applying, on_absent)
        if not unrolled:
            inferences = inferences + 1 if fired == patches_when_inferred else 1
            if learn is None or not fired or applying.is_over or inferences > _MOST_INFERENCES or not learn(ctx):
                return remaining_nodes
            patches_when_inferred = fired
        engine.revisit_all()
        loops = report_new_loops(ctx, report)
    engine.report_limit()
    return []


def _unroll_nodes(applying: Applying, rules: Sequence[Rule[Absent]]) -> tuple[int, list[_Remaining]]:
    """Turn recurrent nodes that the target does not support into loops.

    Return the number of nodes that became loops, and each node that remains.
    """
    ctx, count, remaining = applying.ctx, 0, list[_Remaining]()
    for absent in absent_nodes(ctx):
        entry = REPORT.put_new(absent.node, LoopReport(absent.where, absent.node.op_type, absent.steps, 1, 1))
        reasons = list[Reason]()
        for rule in () if applying.is_over else rules:
            outcome = try_rule(rule, absent, entry.where, ctx)
            if isinstance(outcome, NotApplicable):
                reasons.append(Reason(rule.name, outcome.code, outcome.detail))
                continue
            applying.apply(rule, entry, outcome)
            count += 1
            if all(other is not entry for other in applying.report.loops):
                applying.report.loops.append(entry)
            for node in loops_in(ctx.model.graph):
                REPORT.put_new(node, entry)
            break
        else:
            remaining.append((entry, reasons))
    return count, remaining
