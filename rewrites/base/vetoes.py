"""Vetoes: patches that are forbidden because their results were wrong.

If a rule raises an exception, this module attributes the exception to the rule.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from rewrites.base.errors import InvariantBroken, OrtscanError, is_from_elsewhere
from rewrites.base.not_applicable import NotApplicable

__all__ = ["Lacking", "NoDefect", "RuleFailed", "Veto", "Vetoes"]


class NoDefect(str):
    """A reason for a veto, in one sentence, that is no defect of ortscan. ``code``: its reason code in the report."""

    __slots__ = ()
    code: ClassVar[str]


class Lacking(NoDefect):
    """A reason for a veto: the runtime of the result lacks a feature."""

    __slots__ = ()
    code = "RUNTIME"


@dataclass(frozen=True)
class Veto:
    """Forbids ``rule`` to change the loop or node ``where`` after the first ``after`` patches.

    If ``where`` is empty, the veto holds for all loops.

    ``why``: the defect of the result.
    """

    rule: str
    where: str
    after: int
    why: str

    def __str__(self) -> str:
        return f"{self.rule} on {self.where}" if self.where else self.rule


class RuleFailed(InvariantBroken):
    """A rule raised an exception that no rule may raise. ``veto`` forbids the rule for the loop or node."""

    def __init__(self, message: str, veto: Veto) -> None:
        super().__init__(message)
        self.veto = veto


@dataclass
class Vetoes:
    """All vetoes of one run. ``patches`` has the rule and the loop or node of each patch applied so far."""

    all: Sequence[Veto] = ()
    patches: list[tuple[str, str]] = field(default_factory=list)

    def on(self, rule: str, where: str) -> NotApplicable | None:
        """Return a reason if a veto forbids ``rule`` to change ``where`` now, else None."""
        for veto in self.all:
            if veto.rule == rule and veto.where in (where, "") and veto.after <= len(self.patches):
                if isinstance(veto.why, NoDefect):
                    return NotApplicable(veto.why.code, veto.why)
                return NotApplicable("SELF-CHECK", f"its result for {veto.where or 'loops'} was wrong: {veto.why}")
        return None

    @contextmanager
    def blaming(self, rule: str, where: str) -> Iterator[None]:
        """Turn an exception that is a defect of ``rule`` into RuleFailed. Pass on refusals and exceptions of other code."""
        try:
            yield
        except (MemoryError, RecursionError):
            raise
        except Exception as error:
            if is_from_elsewhere(error) or (isinstance(error, OrtscanError) and not isinstance(error, InvariantBroken)):
                raise
            why = str(error) if isinstance(error, OrtscanError) else f"{type(error).__name__}: {error}"
            raise RuleFailed(f"{rule} fails on {where}: {why}", Veto(rule, where, len(self.patches), why)) from error
