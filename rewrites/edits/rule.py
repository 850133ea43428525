"""What a rule is: it looks at one subject and answers with a Patch, or says why not.

``check`` only looks: it may build detached nodes, and discards them where it then refuses. All change to the model is in the
patch's ``edit``, which the engine runs once, and which never refuses.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

import onnx_ir as ir

from rewrites.base.made import Made
from rewrites.base.not_applicable import NOTHING_HERE, NotApplicable
from rewrites.graph.context import Context

__all__ = ["NOTHING_HERE", "NotApplicable", "Patch", "Rule", "Subject", "Use"]

S = TypeVar("S")

Subject = Literal["loop", "recurrent node", "absent node", "pair", "Einsum", "If", "model"]
"""What a rule looks at: a Scan or Loop; an RNN, GRU or LSTM; one that the target lacks; two of opposite directions; an Einsum;
an If; the whole model."""

Use = Literal["default", "always", "asked"]
"""Whether a rule is used unless the caller leaves it out, whatever the caller says, or only where it is asked for by name."""


@dataclass(frozen=True)
class Patch:
    """One change, ready to be made.

    ``what``: what changes, in one phrase, for the report.
    ``edit``: makes the change and gives the loops that stand where the loop stood (none: it is gone).
    ``notes``: what was assumed or estimated. ``made``: what stands in the loop's place, for programs.
    """

    what: str
    edit: Callable[[], Sequence[ir.Node]]
    notes: tuple[str, ...] = ()
    made: Made = field(default_factory=Made)


@dataclass(eq=False)
class Rule(Generic[S]):
    """One rewrite.

    ``name``: as ``passes=`` and ``skip=`` take it and reports show it. ``phase``: the folder it is in. ``check``: says what to do
    with a subject, or why nothing. ``recognises``: whether it takes a recurrence out of its loop as a whole, so that other states
    are better split off for it. ``needed``: tells the subjects that must not stay as they are in a model that was changed, since
    onnxruntime may end the process; there the rule is used whatever the caller says.
    """

    name: str
    phase: str
    subject: Subject
    check: Callable[[S, Context], Patch | NotApplicable]
    use: Use = "default"
    recognises: bool = False
    needed: Callable[[S], bool] | None = None
