"""The result of a verification: as data, as lines of text, and as an HTML page."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from ortscan.page.document import document, fragment, header
from ortscan.verification.result_html import case_label, verification_html
from rewrites.base.plain_text import counted, sentence

__all__ = [
    "EXECUTED_STEPS",
    "Case",
    "CaseStatus",
    "FirstDifference",
    "Outcome",
    "OutputError",
    "OutputResult",
    "Verification",
]

EXECUTED_STEPS = "executed steps"
"""The key, in ``Case.varied``, of the number of steps that ran until a stop output ended the loop."""

_LONGEST_REASON = 120
_FAILED_NODE = re.compile(r" node\. Name:'([^']*)' Status Message: ")
_AROUND_IT = re.compile(r"running .*Non-zero status code returned while ")
"""The nodes that contain the node that failed."""

Outcome = Literal["equal", "different", "inconclusive"]
CaseStatus = Literal["equal", "different", "skipped", "fails only after"]


@dataclass(frozen=True)
class OutputError:
    """The error of one output in one case.

    Attributes:
        absolute: the largest ``|before - after|``; NaN if the values cannot be subtracted.
        relative: ``absolute`` divided by the largest ``|before|``.
        allowed: the tolerance.
        reason: why the output differs, or None.
    """

    absolute: float
    relative: float
    allowed: float
    reason: str | None = None


@dataclass(frozen=True)
class Case:
    """A set of inputs that was tried.

    Attributes:
        dims: the size of every free dimension, ``{"T": 3, "B": 2}``. A dimension without a name is called ``x[0]``.
        varied: what else distinguishes the case (trip counts, kind of values).
        status: the outcome of the case. ``fails only after``: the original runs and the changed model fails.
        reason: why the case was skipped, or the message with which the changed model fails.
        outputs: the error of each output.
    """

    dims: Mapping[str, int]
    varied: Mapping[str, Any]
    status: CaseStatus
    reason: str | None = None
    outputs: Mapping[str, OutputError] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The case in a few words: ``T=3, B=2, values=large``."""
        return case_label(self.dims, self.varied)


@dataclass(frozen=True)
class OutputResult:
    """The result for one output over all cases.

    ``absolute``, ``relative`` and ``allowed`` are those of the case with the largest error. ``compared`` is the number of cases in
    which this output was compared.
    """

    name: str
    status: Literal["equal", "different", "not comparable", "not compared"]
    absolute: float
    relative: float
    allowed: float
    compared: int
    reason: str | None = None


@dataclass(frozen=True)
class FirstDifference:
    """The first element that differs between the models.

    It has the largest error in the first differing output of the first differing case. ``index`` is () if no single element
    differs, for example if the shapes differ. For a sequence, ``index`` starts with the position in the sequence. ``inside`` is a
    phrase that names the first inner value that differs in this case; it is empty if that is unknown.
    """

    output: str
    case: Case
    index: tuple[int, ...]
    before: Any
    after: Any
    reason: str
    inside: str = ""


@dataclass(frozen=True)
class Verification:
    """The result of `verify`. ``bool(result)`` is ``result.ok``.

    Attributes:
        ok: True if something was compared and nothing differs.
        cases: all cases that were tried.
        outputs: the result for each output.
        first_difference: the first element that differs.
        problems: reasons why the result is not ok, other than different numbers (interface, loading, nothing compared).
        notes: notes for the reader.
        inconclusive: True if nothing could be compared, for example because the first model ran on none of the inputs.
        level: how thorough the comparison was.
        not_tried: what the cases do not cover.
        limits_hit: the limits of time and memory that ended the comparison early.
        witness: the inputs of the first case that differs.
    """

    ok: bool
    cases: Sequence[Case]
    outputs: Sequence[OutputResult]
    first_difference: FirstDifference | None = None
    problems: Sequence[str] = ()
    notes: Sequence[str] = ()
    inconclusive: bool = False
    level: str = "full"
    not_tried: Sequence[str] = ()
    limits_hit: Sequence[str] = ()
    witness: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    @property
    def outcome(self) -> Outcome:
        """The outcome in one word: ``equal``, ``different`` or ``inconclusive``."""
        return "equal" if self.ok else "inconclusive" if self.inconclusive else "different"

    @property
    def needs_inputs(self) -> bool:
        """True if the original ran on none of the tried inputs, so that other inputs may help."""
        return self.inconclusive and bool(self.cases) and not self.compared_cases

    @property
    def compared_cases(self) -> list[Case]:
        """The cases in which the outputs of both models were compared."""
        return [case for case in self.cases if case.status in ("equal", "different")]

    @property
    def worst_error(self) -> float:
        """The largest error of all outputs and cases, as a fraction of the tolerance."""
        errors = [error for case in self.compared_cases for error in case.outputs.values() if error.allowed > 0]
        return max((error.absolute / error.allowed for error in errors if math.isfinite(error.absolute)), default=0.0)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Return the outcome in one line, followed by a line for each note, and a line on what was not tried."""
        lines = [self._headline(self.compared_cases)]
        skipped = [case for case in self.cases if case.status == "skipped"]
        remarks = list(self.notes)
        if skipped:
            remarks.insert(0, f"{counted(len(skipped), 'case')} skipped ({_clipped(skipped[0].reason or '')})")
        lines += remarks
        untried = [*self.not_tried, *(f"more, because {limit} was reached" for limit in self.limits_hit)]
        if untried:
            lines.append(f"not tried: {'; '.join(untried)}")
        return "\n".join(map(sentence, lines))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain dicts and lists. Elements stay numpy scalars or Python objects."""
        facts = {"worst_error": self.worst_error, "summary": self.summary()}
        return {**asdict(replace(self, witness=None)), **facts}

    def to_html(self) -> str:
        """Return a self-contained HTML page."""
        return document("verification", header("ortscan", "Verification", []) + verification_html(self.to_dict()))

    def _repr_html_(self) -> str:
        return fragment(verification_html(self.to_dict()))

    def _headline(self, ran: Sequence[Case]) -> str:
        if not ran and not any(case.status == "fails only after" for case in self.cases):
            return f"nothing was compared: {'; '.join(self.problems) or 'no case ran on the original'}"
        compared = [output for output in self.outputs if output.compared]
        if self.ok:
            worst = f"{_short(self.worst_error)} of what is allowed" if self.worst_error else "0"
            return f"equal on {counted(len(ran), 'case')} (worst error {worst}){_ranges(ran)}"
        what = f"compared {counted(len(compared), 'output')} on {counted(len(ran), 'case')}{_ranges(ran)}"
        differs = [] if self.first_difference is None else [_describe(self.first_difference)]
        failed = any(case.status == "fails only after" for case in self.cases)
        return f"{what}: {'different' if differs or failed else 'not proven equal'}: {'; '.join([*differs, *self.problems])}"


def _describe(first: FirstDifference) -> str:
    where = f" at {list(first.index)}" if first.index else ""
    inside = f"; {first.inside}" if first.inside else ""
    return f"output '{first.output}'{where} {first.reason} ({first.case.label}){inside}"


def _ranges(cases: Sequence[Case]) -> str:
    """Return all sizes and other integers of the cases as text: ``: T in 1, 2, 3; B in 1, 3``."""
    seen: dict[str, set[int]] = {}
    for case in cases:
        for name, size in case.dims.items():
            seen.setdefault(name, set()).add(size)
        for name, value in case.varied.items():
            if isinstance(value, int):
                seen.setdefault(name, set()).add(value)
    text = "; ".join(f"{name} in {', '.join(map(str, sorted(sizes)))}" for name, sizes in seen.items())
    return f": {text}" if text else ""


def _clipped(text: str) -> str:
    text = _FAILED_NODE.sub(lambda match: f" node{match[1] and f' {match[1]!r}'}: ", _AROUND_IT.sub("", text))
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 3] + "..."


def _short(number: float) -> str:
    return f"{number:.1g}".replace("e-0", "e-").replace("e+0", "e+")
