"""The reason why a rewrite does not apply, as a value."""

from dataclasses import dataclass

__all__ = ["NOTHING_HERE", "NotApplicable"]


@dataclass(frozen=True)
class NotApplicable:
    """The reason why a rule does not fire: a stable ``code`` such as ``SCAN-NO-BATCHING-RULE``, and the values that decided it.

    ``silent``: there is nothing for the rule here; reports omit such reasons. ``is_a``: what the loop computes nevertheless.
    """

    code: str
    detail: str = ""
    silent: bool = False
    is_a: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code


NOTHING_HERE = NotApplicable("NOTHING-HERE", silent=True)
