"""Asks a rule about a subject, where no veto forbids it; a rule that fails is to blame."""

from typing import TypeVar

from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Context
from rewrites.rule import Patch, Rule

__all__ = ["ask"]

S = TypeVar("S")


def ask(rule: Rule[S], subject: S, where: str, ctx: Context) -> Patch | NotApplicable:
    """Return what ``rule`` says of ``subject``, which the report calls ``where``; the model stays as it is.

    Constants that the rule wants become initializers where its patch is made. Raises RuleFailed for a defect of the rule.
    """
    veto = ctx.vetoes.on(rule.name, where)
    if veto is not None:
        return veto
    with ctx.vetoes.blaming(rule.name, where), ctx.constants.looking() as wanted:
        outcome = rule.check(subject, ctx)
    return outcome.after(lambda: ctx.constants.put(wanted)) if wanted and isinstance(outcome, Patch) else outcome
