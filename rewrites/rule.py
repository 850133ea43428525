"""What a rule is: it looks at one subject and answers with a Patch, or says why not.

``check`` only looks: it may build detached nodes, and discards them where it then refuses. All change to the model is in the
patch's ``edit``, which the engine runs once, and which never refuses.

Whether a loop is to be compiled, which closed forms of its states then leave it to.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar

import onnx_ir as ir

from rewrites.base.not_applicable import NOTHING_HERE, NotApplicable
from rewrites.base.report import PatchOutcome
from rewrites.graph.context import Context
from rewrites.graph.node_inference import put_shapes, shapes_of, taken_back
from rewrites.graph.walk import inner_values
from rewrites.loops import Loop

__all__ = ["NOTHING_HERE", "NotApplicable", "Patch", "Rule", "Subject", "Use", "is_to_be_compiled", "learning"]

S = TypeVar("S")

Subject = Literal["loop", "recurrent node", "absent node", "written-out steps", "pair", "guarded node", "If", "model"]
"""What a rule looks at: a Scan or Loop; an RNN, GRU or LSTM; one that the target lacks; steps written out; two nodes of
opposite directions; what onnxruntime may die of, such as an Einsum; an If; the whole model."""

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
    made: PatchOutcome = field(default_factory=PatchOutcome)

    def after(self, first: Callable[[], object]) -> "Patch":
        """Return the patch that does ``first`` before it makes the change."""

        def edit() -> Sequence[ir.Node]:
            first()
            return self.edit()

        return replace(self, edit=edit)


def learning(body: ir.Graph, look: Callable[[], Patch | NotApplicable]) -> Patch | NotApplicable:
    """Return what ``look`` returns; the shapes that it finds of values in ``body`` wait for the patch to be made."""
    before = shapes_of([*body.inputs, *inner_values(body)])
    outcome = look()
    learned = taken_back(before)
    return outcome.after(lambda: put_shapes(learned)) if learned and isinstance(outcome, Patch) else outcome


@dataclass(eq=False)
class Rule(Generic[S]):
    """One rewrite.

    ``name``: as ``passes=`` and ``skip=`` take it and reports show it. ``phase``: the folder it is in. ``check``: says what to do
    with a subject, or why nothing. ``recognises``: whether it takes a recurrence out of its loop as a whole, so that other states
    are better split off for it. ``needed``: tells the subjects that must not stay as they are in a model that was changed, since
    onnxruntime may end the process; there the rule is used whatever the caller says. ``formerly``: its name in the release before,
    which ``passes=`` and ``skip=`` take for one more.
    """

    name: str
    phase: str
    subject: Subject
    check: Callable[[S, Context], Patch | NotApplicable]
    use: Use = "default"
    recognises: bool = False
    needed: Callable[[S], bool] | None = None
    formerly: str = ""


def is_to_be_compiled(loop: Loop, ctx: Context) -> bool:
    """Return whether a rule that is in use hands the loop to the library of loop plans as it is."""
    return any(rule.phase == "native" and rule.subject == "loop" and isinstance(rule.check(loop, ctx), Patch) for rule in ctx.rules)
