"""Forbidden patches, whose results were wrong, and the blame of rules for failures."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from rewrites.base.errors import InvariantBroken, OrtscanError, is_from_elsewhere
from rewrites.base.not_applicable import NotApplicable

__all__ = ["Lacking", "NoDefect", "RuleFailed", "Veto", "Vetoes"]


class NoDefect(str):
    """A reason in one sentence that is no defect of ortscan. ``code``: the reason code for the subject."""

    __slots__ = ()
    code: ClassVar[str]


class Lacking(NoDefect):
    """A feature that the runtime of the result does not have."""

    __slots__ = ()
    code = "RUNTIME"


@dataclass(frozen=True)
class Veto:
    """After ``after`` patches, ``rule`` must leave the loop or node ``where`` alone (all, if empty).

    ``why``: the defect of its result.
    """

    rule: str
    where: str
    after: int
    why: str

    def __str__(self) -> str:
        return f"{self.rule} on {self.where}" if self.where else self.rule


class RuleFailed(InvariantBroken):
    """A rule raised an exception that no rule may raise. ``veto`` keeps the rule from the loop or node."""

    def __init__(self, message: str, veto: Veto) -> None:
        super().__init__(message)
        self.veto = veto


@dataclass
class Vetoes:
    """All vetoes of one run, and the ``patches`` applied so far: the rule and the loop or node of each."""

    all: Sequence[Veto] = ()
    patches: list[tuple[str, str]] = field(default_factory=list)

    def on(self, rule: str, where: str) -> NotApplicable | None:
        """Return the reason why ``rule`` must leave ``where`` alone now, or None."""
        for veto in self.all:
            if veto.rule == rule and veto.where in (where, "") and veto.after <= len(self.patches):
                if isinstance(veto.why, NoDefect):
                    return NotApplicable(veto.why.code, veto.why)
                return NotApplicable("SELF-CHECK", f"its result for {veto.where or 'loops'} was wrong: {veto.why}")
        return None

    @contextmanager
    def blaming(self, rule: str, where: str) -> Iterator[None]:
        """Turn an exception that is a defect of the rule into RuleFailed; let refusals and exceptions from elsewhere pass."""
        try:
            yield
        except (MemoryError, RecursionError):
            raise
        except Exception as error:
            if is_from_elsewhere(error) or (isinstance(error, OrtscanError) and not isinstance(error, InvariantBroken)):
                raise
            why = str(error) if isinstance(error, OrtscanError) else f"{type(error).__name__}: {error}"
            raise RuleFailed(f"{rule} fails on {where}: {why}", Veto(rule, where, len(self.patches), why)) from error
