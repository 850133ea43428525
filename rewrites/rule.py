"""Defines rules. A rule examines one subject, and returns a Patch or the reason why it does not apply.

``check`` does not change the model. It may build detached nodes, and discards them if it returns a reason. The ``edit`` of the
patch makes all changes to the model. The engine calls it once, and it must succeed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar

import onnx_ir as ir

from rewrites.base.not_applicable import NOTHING_HERE, NotApplicable
from rewrites.base.report import PatchOutcome
from rewrites.graph.context import Context
from rewrites.graph.node_inference import put_shapes, restore_shapes, shapes_of
from rewrites.graph.walk import inner_values
from rewrites.loops import Loop

__all__ = ["NOTHING_HERE", "NotApplicable", "Patch", "Rule", "Subject", "Use", "deferring_shapes", "is_to_be_compiled"]

S = TypeVar("S")

Subject = Literal[
    "loop", "recurrent node", "absent node", "written-out steps", "prefix tree", "pair", "guarded node", "If", "model"
]
"""The subject of a rule: a Scan or Loop; an RNN, GRU or LSTM; a recurrent node that the target lacks; unrolled steps; nodes that
compute all prefixes without a loop; two recurrent nodes of opposite directions; a node on which onnxruntime may crash, such as an
Einsum; an If; the whole model."""

Use = Literal["default", "always", "asked"]
"""When a rule is used: unless the caller skips it (default), always, or only if the caller names it (asked)."""


@dataclass(frozen=True)
class Patch:
    """One change, ready to be applied.

    Args:
        what: The change in one phrase, for reports.
        edit: Applies the change and returns the loops that replace the subject. The list is empty if no loop replaces it.
        notes: Assumptions and estimates, for reports.
        outcome: The outcome of the change as data, for programs that read the report.
    """

    what: str
    edit: Callable[[], Sequence[ir.Node]]
    notes: tuple[str, ...] = ()
    outcome: PatchOutcome = field(default_factory=PatchOutcome)

    def preceded_by(self, action: Callable[[], object]) -> "Patch":
        """Return a patch that calls ``action`` before it applies this change."""

        def edit() -> Sequence[ir.Node]:
            action()
            return self.edit()

        return replace(self, edit=edit)


def deferring_shapes(body: ir.Graph, find_patch: Callable[[], Patch | NotApplicable]) -> Patch | NotApplicable:
    """Return the result of ``find_patch``, but leave the shapes in ``body`` as they were before the call.

    If ``find_patch`` inferred shapes in ``body`` and returned a patch, applying the patch sets these shapes.
    """
    original_shapes = shapes_of([*body.inputs, *inner_values(body)])
    result = find_patch()
    inferred = restore_shapes(original_shapes)
    return result.preceded_by(lambda: put_shapes(inferred)) if inferred and isinstance(result, Patch) else result


@dataclass(eq=False)
class Rule(Generic[S]):
    """One rewrite.

    Args:
        name: The name of the rule in ``passes=``, ``skip=`` and reports.
        phase: The group of rules to which the rule belongs.
        subject: What ``check`` examines (see ``Subject``).
        check: Returns a patch for a subject, or the reason why the rule does not apply.
        use: When the rule is used (see ``Use``).
        recognises: True if the rule replaces a whole recurrence, so that unrelated states of the loop should be split off first.
        crash_prone: Returns True for a subject on which onnxruntime may crash. If a rewrite has changed the model, the rule always
            runs on such subjects.
        formerly: The name of the rule in the previous release. ``passes=`` and ``skip=`` accept it for one more release.
        computes: A phrase for reports that says what the replaced loops compute.
    """

    name: str
    phase: str
    subject: Subject
    check: Callable[[S, Context], Patch | NotApplicable]
    use: Use = "default"
    recognises: bool = False
    crash_prone: Callable[[S], bool] | None = None
    formerly: str = ""
    computes: str = ""


def is_to_be_compiled(loop: Loop, ctx: Context) -> bool:
    """Return True if a rule in use can compile the loop, in its present form, to a plan."""
    patches = (rule.check(loop, ctx) for rule in ctx.rules if rule.phase == "native" and rule.subject == "loop")
    return any(isinstance(patch, Patch) and patch.outcome.instructions for patch in patches)
