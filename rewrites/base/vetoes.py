"""Patches that must not be made again because their result was found wrong, and which rule is to blame for a failure."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from rewrites.base.errors import InvariantBroken, OrtscanError, is_from_elsewhere
from rewrites.base.not_applicable import NotApplicable

__all__ = ["Lacking", "NoDefect", "RuleFailed", "Veto", "Vetoes"]


class NoDefect(str):
    """Says in one sentence what is wrong. ``code``: of the reason for what is left."""

    __slots__ = ()
    code: ClassVar[str]


class Lacking(NoDefect):
    """Says what the runtime that the result is for does not have."""

    __slots__ = ()
    code = "RUNTIME"


@dataclass(frozen=True)
class Veto:
    """Once ``after`` patches are made, ``rule`` leaves the loop or node ``where`` (all, if empty) alone; ``why`` is what was
    wrong.
    """

    rule: str
    where: str
    after: int
    why: str

    def __str__(self) -> str:
        return f"{self.rule} on {self.where}" if self.where else self.rule


class RuleFailed(InvariantBroken):
    """A rule raised what no rule may raise; ``veto`` keeps it from the loop or node."""

    def __init__(self, message: str, veto: Veto) -> None:
        super().__init__(message)
        self.veto = veto


@dataclass
class Vetoes:
    """All that hold in one run, and the ``patches`` made in it so far: rule, and loop or node, of each."""

    all: Sequence[Veto] = ()
    patches: list[tuple[str, str]] = field(default_factory=list)

    def on(self, rule: str, where: str) -> NotApplicable | None:
        """Return why ``rule`` must leave ``where`` alone now, or None."""
        for veto in self.all:
            if veto.rule == rule and veto.where in (where, "") and veto.after <= len(self.patches):
                if isinstance(veto.why, NoDefect):
                    return NotApplicable(veto.why.code, veto.why)
                return NotApplicable("SELF-CHECK", f"what it made of {veto.where or 'loops'} was found wrong: {veto.why}")
        return None

    @contextmanager
    def blaming(self, rule: str, where: str) -> Iterator[None]:
        """Turn an exception that is a defect of the rule's into RuleFailed; refusals, and what comes from elsewhere, pass."""
        try:
            yield
        except (MemoryError, RecursionError):
            raise
        except Exception as error:
            if is_from_elsewhere(error) or (isinstance(error, OrtscanError) and not isinstance(error, InvariantBroken)):
                raise
            why = str(error) if isinstance(error, OrtscanError) else f"{type(error).__name__}: {error}"
            raise RuleFailed(f"{rule} fails on {where}: {why}", Veto(rule, where, len(self.patches), why)) from error
