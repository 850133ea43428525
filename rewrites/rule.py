"""The form of a rule: it looks at one subject and returns a Patch, or the reason why it does not apply.

``check`` only looks: it may build detached nodes, and discards them if it then refuses. The ``edit`` of the patch makes every
change to the model. The engine runs it once; it never refuses.
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
"""The subject of a rule: a Scan or Loop; an RNN, GRU or LSTM; one that the target lacks; unrolled steps; two nodes of
opposite directions; a node that may crash onnxruntime, such as an Einsum; an If; the whole model."""

Use = Literal["default", "always", "asked"]
"""A rule is used unless the caller skips it, always, or only if the caller names it."""


@dataclass(frozen=True)
class Patch:
    """One change, ready to be applied.

    Args:
        what: The change in one phrase, for reports.
        edit: Applies the change and returns the loops that replace the subject; none if it is gone.
        notes: Assumptions and estimates.
        made: The outcome, for programs.
    """

    what: str
    edit: Callable[[], Sequence[ir.Node]]
    notes: tuple[str, ...] = ()
    made: PatchOutcome = field(default_factory=PatchOutcome)

    def after(self, first: Callable[[], object]) -> "Patch":
        """Return a patch that calls ``first`` before it applies the change."""

        def edit() -> Sequence[ir.Node]:
            first()
            return self.edit()

        return replace(self, edit=edit)


def learning(body: ir.Graph, look: Callable[[], Patch | NotApplicable]) -> Patch | NotApplicable:
    """Return the result of ``look``. Shapes that it infers in ``body`` take effect only when the patch is applied."""
    before = shapes_of([*body.inputs, *inner_values(body)])
    outcome = look()
    learned = taken_back(before)
    return outcome.after(lambda: put_shapes(learned)) if learned and isinstance(outcome, Patch) else outcome


@dataclass(eq=False)
class Rule(Generic[S]):
    """One rewrite.

    Args:
        name: Its name in ``passes=``, ``skip=`` and reports.
        phase: The folder that it is in.
        check: Returns a patch for a subject, or the reason why there is none.
        recognises: True if it replaces a whole recurrence, so that other states should be split off for it.
        needed: Returns True for a subject that may crash onnxruntime. On such subjects of a changed model the rule always runs.
        formerly: Its name in the previous release, which ``passes=`` and ``skip=`` accept for one more.
        computes: What a loop computes that the rule takes out, in words for reports.
    """

    name: str
    phase: str
    subject: Subject
    check: Callable[[S, Context], Patch | NotApplicable]
    use: Use = "default"
    recognises: bool = False
    needed: Callable[[S], bool] | None = None
    formerly: str = ""
    computes: str = ""


def is_to_be_compiled(loop: Loop, ctx: Context) -> bool:
    """Return True if a rule in use compiles the loop to a plan as it is."""
    return any(rule.phase == "native" and rule.subject == "loop" and isinstance(rule.check(loop, ctx), Patch) for rule in ctx.rules)
