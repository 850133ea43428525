"""Tries rules on subjects (loops, nodes, Ifs or models) and applies their patches.

Each patch gets a number and an entry in the report. The number of patches can be limited.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.base.report import Fired, LoopReport, NodeReport, RewriteReport
from rewrites.driver.invariants import check_invariants
from rewrites.graph.context import Context
from rewrites.rule import Patch, Rule

__all__ = ["Applying", "try_rule"]


S = TypeVar("S")


def try_rule(rule: Rule[S], subject: S, where: str, ctx: Context) -> Patch | NotApplicable:
    """Return the patch of ``rule`` for ``subject``, or the reason why the rule does not apply.

    ``where``: the path of the subject in the model. If ``ctx.vetoes`` forbids this rule at this path, return the reason of the
    veto. The model does not change. If the rule created constants, applying the patch adds them to the model.
    """
    veto = ctx.vetoes.on(rule.name, where)
    if veto is not None:
        return veto
    with ctx.vetoes.blaming(rule.name, where), ctx.constants.looking() as new_constants:
        outcome = rule.check(subject, ctx)
    return (
        outcome.preceded_by(lambda: ctx.constants.put(new_constants)) if new_constants and isinstance(outcome, Patch) else outcome
    )


class Applying:
    """Applies patches to the model of ``ctx`` and records them in ``report``.

    ``patches_left``: the number of patches that may still be applied; None for any number.
    ``unrolled``: True if a patch of this object unrolled a loop.
    """

    def __init__(self, ctx: Context, report: RewriteReport, stop_after: int | None, debug: bool) -> None:
        self.ctx, self.report, self.patches_left = ctx, report, stop_after
        self.unrolled = False
        self._debug = debug

    @property
    def is_over(self) -> bool:
        """Return True if no more patches may be applied."""
        return self.patches_left == 0

    def apply(self, rule: Rule[Any], entry: LoopReport | NodeReport, patch: Patch) -> Sequence[ir.Node]:
        """Apply ``patch`` of ``rule``, and return the nodes that replace its subject.

        Record the patch in the report of the model, and in ``entry``, the report of the subject.
        """
        with self.ctx.vetoes.blaming(rule.name, entry.where):
            replaced = patch.edit()
        fired = Fired(len(self.report.patches) + 1, rule.name, entry.where, patch.what, patch.outcome)
        self.report.patches.append(fired)
        entry.fired.append(fired)
        self.ctx.vetoes.patches.append((rule.name, entry.where))
        self.unrolled |= rule.phase == "unroll"
        if self.patches_left is not None:
            self.patches_left -= 1
        if self._debug and rule.use != "always":
            check_invariants(self.ctx.model, f"patch {fired.number} ({fired.rule} on {fired.loop})")
        return replaced

    def change_node(self, rule: Rule[Any], entry: NodeReport, patch: Patch) -> Sequence[ir.Node] | None:
        """Apply a patch of a recurrent node, or return None if no more patches may be applied.

        See ``apply``.
        """
        return None if self.is_over else self.apply(rule, entry, patch)
