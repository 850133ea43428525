"""A rule looks at one loop and answers with a Patch, or says why not.

``check`` only looks: it may build detached nodes, and discards them where it then refuses. All change to the model is in the
patch's ``edit``, which the driver runs once, and which never refuses.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rewrites.context import Context
from rewrites.loops import Loop
from rewrites.not_applicable import NotApplicable

__all__ = ["NotApplicable", "Patch", "Rule"]


@dataclass(frozen=True)
class Patch:
    """One change, ready to be made.

    ``what``: what changes, in one phrase, for the report.
    ``edit``: makes the change.
    ``notes``: reasons for what had to stay, where the change takes only a part of the loop away.
    """

    what: str
    edit: Callable[[], None]
    notes: tuple[NotApplicable, ...] = ()


class Rule(Protocol):
    """One rewrite."""

    @property
    def name(self) -> str:
        """The rule's name, as ``passes=`` and ``skip=`` take it and reports show it."""

    def check(self, loop: Loop, ctx: Context, /) -> Patch | NotApplicable:
        """Say what to do with ``loop``, or why nothing."""
