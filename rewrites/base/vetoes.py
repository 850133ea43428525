"""Vetoes. Each veto forbids a rule to change a certain loop or node, or all loops and nodes.

A veto has one of three causes: a result of the rule was wrong, the runtime cannot run a result of the rule, or the rule raised an
exception because of a defect in the rule. ``Vetoes.blaming`` creates the vetoes for exceptions.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from rewrites.base.errors import InvariantBroken, OrtscanError, is_from_elsewhere
from rewrites.base.not_applicable import NotApplicable

__all__ = ["Lacking", "NoDefect", "RuleFailed", "Veto", "Vetoes"]


class NoDefect(str):
    """A text for ``Veto.why``. Its type tells that no defect of ortscan caused the veto.

    ``code``: the reason code in the report.
    """

    __slots__ = ()
    code: ClassVar[str]


class Lacking(NoDefect):
    """A text for ``Veto.why``: the rewritten model needs a feature that the runtime lacks."""

    __slots__ = ()
    code = "RUNTIME"


@dataclass(frozen=True)
class Veto:
    """Forbids a rule to change a loop or node.

    Args:
        rule: The name of the rule.
        where: The path of the loop or node, or empty if the veto holds for all loops and nodes.
        after: The veto takes effect when the run has applied this number of patches, by any rules.
        why: What was wrong with the result.
    """

    rule: str
    where: str
    after: int
    why: str

    def __str__(self) -> str:
        return f"{self.rule} on {self.where}" if self.where else self.rule


class RuleFailed(InvariantBroken):
    """A defect of a rule caused an exception. ``veto`` forbids the rule to change the loop or node again."""

    def __init__(self, message: str, veto: Veto) -> None:
        super().__init__(message)
        self.veto = veto


@dataclass
class Vetoes:
    """All vetoes of one run.

    ``patches`` lists the patches applied so far, each as a pair: the name of the rule, and the path of the loop or node.
    """

    all: Sequence[Veto] = ()
    patches: list[tuple[str, str]] = field(default_factory=list)

    def on(self, rule: str, where: str) -> NotApplicable | None:
        """Return a reason if a veto forbids ``rule`` to change the loop or node ``where``, else None.

        A veto counts only if ``veto.after`` patches or more have been applied.
        """
        for veto in self.all:
            if veto.rule == rule and veto.where in (where, "") and veto.after <= len(self.patches):
                if isinstance(veto.why, NoDefect):
                    return NotApplicable(veto.why.code, veto.why)
                return NotApplicable("SELF-CHECK", f"its result for {veto.where or 'loops'} was wrong: {veto.why}")
        return None

    @contextmanager
    def blaming(self, rule: str, where: str) -> Iterator[None]:
        """Raise RuleFailed in place of an exception in the ``with`` block that shows a defect of ``rule``.

        Other exceptions pass unchanged: errors that ortscan raises on purpose, exceptions of foreign code, MemoryError and
        RecursionError. ``where`` is the loop or node that the rule works on.
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
