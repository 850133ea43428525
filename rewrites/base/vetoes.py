"""Vetoes: each forbids a rule to change a loop or node, because the result was wrong.

If a rule raises an exception that is its own defect, this module creates a veto against the rule.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from rewrites.base.errors import InvariantBroken, OrtscanError, is_from_elsewhere
from rewrites.base.not_applicable import NotApplicable

__all__ = ["Lacking", "NoDefect", "RuleFailed", "Veto", "Vetoes"]


class NoDefect(str):
    """The ``why`` of a veto that no defect of ortscan caused. ``code``: the reason code in the report."""

    __slots__ = ()
    code: ClassVar[str]


class Lacking(NoDefect):
    """The ``why`` of a veto whose cause is that the runtime lacks a feature that the result needs."""

    __slots__ = ()
    code = "RUNTIME"


@dataclass(frozen=True)
class Veto:
    """Forbids a rule to change a loop or node.

    Args:
        rule: The name of the rule.
        where: The loop or node. Empty: the veto holds for all loops and nodes.
        after: The number of applied patches from which on the veto holds.
        why: What was wrong with the result.
    """

    rule: str
    where: str
    after: int
    why: str

    def __str__(self) -> str:
        return f"{self.rule} on {self.where}" if self.where else self.rule


class RuleFailed(InvariantBroken):
    """A rule raised an exception that is its own defect. ``veto`` forbids the rule for this loop or node."""

    def __init__(self, message: str, veto: Veto) -> None:
        super().__init__(message)
        self.veto = veto


@dataclass
class Vetoes:
    """All vetoes of one run.

    ``patches`` contains a pair for each patch applied so far: the name of the rule, and the loop or node.
    """

    all: Sequence[Veto] = ()
    patches: list[tuple[str, str]] = field(default_factory=list)

    def on(self, rule: str, where: str) -> NotApplicable | None:
        """Return a reason if a veto now forbids ``rule`` to change the loop or node ``where``, else None."""
        for veto in self.all:
            if veto.rule == rule and veto.where in (where, "") and veto.after <= len(self.patches):
                if isinstance(veto.why, NoDefect):
                    return NotApplicable(veto.why.code, veto.why)
                return NotApplicable("SELF-CHECK", f"its result for {veto.where or 'loops'} was wrong: {veto.why}")
        return None

    @contextmanager
    def blaming(self, rule: str, where: str) -> Iterator[None]:
        """Turn an exception in the ``with`` block into RuleFailed if it is a defect of ``rule``.

        Other exceptions pass: refusals on purpose, exceptions of foreign code, and exhausted memory or stack.
        """
        try:
            yield
        except (MemoryError, RecursionError):
            raise
        except Exception as error:
            if is_from_elsewhere(error) or (isinstance(error, OrtscanError) and not isinstance(error, InvariantBroken)):
                raise
            why = str(error) if isinstance(error, OrtscanError) else f"{type(error).__name__}: {error}"
            raise RuleFailed(f"{rule} fails on {where}: {why}", Veto(rule, where, len(self.patches), why)) from error
