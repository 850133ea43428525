"""The line that a report starts with.

It says how much faster the result is, how many loops are gone, and if the results are equal.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ortscan.report.ratio import Speedup
from ortscan.report.words import node_sentences
from rewrites.base.plain_text import counted
from rewrites.base.report import RewriteReport

__all__ = ["Answer", "LoopAnswer", "opening"]


@dataclass(frozen=True)
class Answer:
    """The answer of a report in one line.

    Attributes:
        changed: True if the model was changed.
        loops: the number of loops of the original.
        gone: the number of loops that are no longer in the model.
        compiled: the number of loops that ortscan's library runs.
        fallbacks: the number of loops that an If runs only for what their replacements do not cover.
        outcome: the outcome of the comparison with the original; ``not compared`` if there was none. None to say nothing.
        cases: the number of cases in which both models ran.
        speedup: how much faster the result is; None if that was not measured.
        without_library: how much faster the result is without ortscan's library; None if it has no compiled loops.
        not_timed: why the result was not timed, or empty.
        weights: the error that the format of the weights makes, or empty.
    """

    changed: bool
    loops: int
    gone: int
    compiled: int
    fallbacks: int = 0
    outcome: Literal["equal", "different", "inconclusive", "not compared"] | None = None
    cases: int = 0
    speedup: Speedup | None = None
    without_library: Speedup | None = None
    not_timed: str = ""
    weights: str = ""

    @classmethod
    def of(cls, report: RewriteReport, **facts: Any) -> "Answer":
        """Return the answer for ``report``. ``facts`` are the attributes that do not follow from the report."""
        fates = Counter(loop.fate for loop in report.loops)
        fallbacks = sum(loop.fallback for loop in report.loops)
        smaller = report.weights
        weights = f"{smaller.stored_as} weights, {smaller.error_text}" if smaller is not None and smaller.stored else ""
        counts = (len(report.loops), fates["removed"], fates["compiled"], fallbacks)
        return cls(report.changed, *counts, weights=weights, **facts)

    @property
    def look(self) -> Literal["good", "some", "bad"]:
        """The answer as a colour.

        ``bad`` if the results differ. ``good`` if they are equal, no loop is left, and the result is faster.
        """
        if self.outcome == "different":
            return "bad"
        is_left = self.gone + self.compiled < self.loops
        no_gain = not self.changed or (self.speedup is not None and not self.speedup.ratio.is_faster)
        return "some" if is_left or no_gain or self.outcome in ("inconclusive", "not compared") else "good"

    def __str__(self) -> str:
        """Return the answer as a line.

        An example is ``4.6 x faster (24.7 µs instead of 114 µs, T=64) · 1 of 1 loop gone · equal on 12 cases``.
        """
        return " · ".join(filter(None, [self._gain(), self._loops(), self._equality(), self.weights, self.not_timed]))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data, with its line as ``text``."""
        return {**asdict(self), "text": str(self)}

    def _gain(self) -> str:
        if not self.changed:
            return "nothing changed"
        if self.speedup is None:
            return ""
        return str(self.speedup) if self.without_library is None else self.speedup.with_library(self.without_library)

    def _loops(self) -> str:
        if not self.loops:
            return "the model has no Scan or Loop"
        loops = counted(self.loops, "loop")
        if self.compiled == self.loops:
            return f"{self.compiled} of {loops} compiled"
        left = counted(self.loops - self.gone - self.compiled, "loop")
        parts = [f"{self.gone} of {loops} gone" if self.changed else f"{left} left"]
        parts += [f"{self.compiled} compiled"] if self.compiled else []
        parts += [f"{self.fallbacks} only as a fallback"] if self.fallbacks else []
        return ", ".join(parts)

    def _equality(self) -> str:
        if self.outcome == "equal":
            return f"equal on {counted(self.cases, 'case')}{' with float32 weights' if self.weights else ''}"
        if self.outcome == "inconclusive":
            return "not proven equal" if self.cases else "nothing could be compared"
        return "NOT equal" if self.outcome == "different" else self.outcome or ""


@dataclass(frozen=True)
class LoopAnswer(Answer):
    """The answer of ``ortscan loop``, which made one loop from a step.

    Attributes:
        kind: Scan or Loop.
        steps: the numbers of steps that ran in the comparison until a stop output ended the loop; empty without such an output.
    """

    kind: str = ""
    steps: Sequence[int] = ()

    def _loops(self) -> str:
        return f"a {self.kind} instead of one call for each step"

    def _equality(self) -> str:
        if self.outcome != "equal" or not self.steps:
            return super()._equality()
        least, most = min(self.steps), max(self.steps)
        return f"{super()._equality()} of {counted(most, 'step') if least == most else f'{least} to {most} steps'}"


def opening(answer: Answer, report: RewriteReport) -> list[str]:
    """Return the lines that a report starts with.

    They are the answer, the sentences on recurrent nodes and weights, and the messages on the whole model.
    """
    weights = [] if report.weights is None else report.weights.sentences()
    return [str(answer), *node_sentences(report), *weights, *report.messages]
