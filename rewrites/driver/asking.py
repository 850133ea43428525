"""Asks a rule about a subject, where no veto forbids it; a rule that fails is to blame."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.edits.rule import Patch, Rule
from rewrites.graph.context import Context

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
    if not wanted or not isinstance(outcome, Patch):
        return outcome
    make = outcome.edit

    def edit() -> Sequence[ir.Node]:
        ctx.constants.put(wanted)
        return make()

    return replace(outcome, edit=edit)
