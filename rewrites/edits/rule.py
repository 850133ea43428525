"""A rule looks at one loop and answers with a Patch, or says why not.

``check`` only looks: it may build detached nodes, and discards them where it then refuses. All change to the model is in the
patch's ``edit``, which the driver runs once, and which never refuses.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import onnx_ir as ir

from rewrites.base.not_applicable import NOTHING_HERE, NotApplicable
from rewrites.graph.context import Context
from rewrites.loops import Loop

__all__ = ["NOTHING_HERE", "NotApplicable", "Patch", "Rule"]


@dataclass(frozen=True)
class Patch:
    """One change, ready to be made.

    ``what``: what changes, in one phrase, for the report.
    ``edit``: makes the change and gives the loops that stand where the loop stood (none: it is gone).
    ``notes``: what was assumed or estimated.
    """

    what: str
    edit: Callable[[], Sequence[ir.Node]]
    notes: tuple[str, ...] = ()


class Rule(Protocol):
    """One rewrite; a module with a ``NAME`` and a ``check`` is one."""

    NAME: str
    """The rule's name, as ``passes=`` and ``skip=`` take it and reports show it."""

    def check(self, loop: Loop, ctx: Context, /) -> Patch | NotApplicable:
        """Say what to do with ``loop``, or why nothing."""
