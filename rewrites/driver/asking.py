"""Asks a rule about a subject, where no veto forbids it; a rule that fails is to blame."""

from typing import TypeVar

from rewrites.base.not_applicable import NotApplicable
from rewrites.edits.rule import Patch, Rule
from rewrites.graph.context import Context

__all__ = ["ask"]

S = TypeVar("S")


def ask(rule: Rule[S], subject: S, where: str, ctx: Context) -> Patch | NotApplicable:
    """Return what ``rule`` says of ``subject``, which the report calls ``where``. Raises RuleFailed for a defect of the rule."""
    with ctx.vetoes.blaming(rule.name, where):
        return ctx.vetoes.on(rule.name, where) or rule.check(subject, ctx)
