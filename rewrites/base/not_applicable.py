"""The reason why a rewrite does not apply, as a value."""

from dataclasses import dataclass

__all__ = ["NOTHING_HERE", "NotApplicable"]


@dataclass(frozen=True)
class NotApplicable:
    """The reason why a rule does not apply.

    Args:
        code: A stable code such as ``NO-BATCHING-RULE``.
        detail: The values that led to the reason, in words.
        silent: True if reports omit the reason, for example because the loop contains nothing that the rule changes.
        is_a: A description of what the loop computes, if the rule recognised it.
    """

    code: str
    detail: str = ""
    silent: bool = False
    is_a: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code


NOTHING_HERE = NotApplicable("NOTHING-HERE", silent=True)
