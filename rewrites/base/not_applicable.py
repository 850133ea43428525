"""Why a rewrite does not apply, as a value."""

from dataclasses import dataclass

__all__ = ["NOTHING_HERE", "NotApplicable"]


@dataclass(frozen=True)
class NotApplicable:
    """Why a rule does not fire: a stable code such as ``SCAN-NO-BATCHING-RULE``, and the values that decided it.

    ``silent``: there is nothing of the rule's kind, which reports leave out. ``is_a``: what the loop computes all the same.
    """

    code: str
    detail: str = ""
    silent: bool = False
    is_a: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code


NOTHING_HERE = NotApplicable("NOTHING-HERE", silent=True)
