"""What a verification found, as data and as one or two lines of text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from rewrites.base.plain_text import sentence

__all__ = ["Case", "CaseStatus", "FirstDifference", "Outcome", "OutputError", "OutputResult", "Verification"]

_LONGEST_REASON = 120

Outcome = Literal["equal", "different", "inconclusive"]
CaseStatus = Literal["equal", "different", "skipped", "fails only after"]


@dataclass(frozen=True)
class OutputError:
    """How far one output is off in one case.

    ``absolute`` is the largest ``|before - after|`` (NaN where the values cannot be subtracted), ``relative`` the same over the
    largest ``|before|``, ``allowed`` what was tolerated. ``reason`` says why the output differs, or is None.
    """

    absolute: float
    relative: float
    allowed: float
    reason: str | None = None


@dataclass(frozen=True)
class Case:
    """One set of inputs that was tried.

    ``dims`` holds the size of every free dimension (``{"T": 3, "B": 2}``; an anonymous dimension is called ``x[0]``), ``varied``
    what else made this case special (trip counts, kind of values). A ``skipped`` case says in ``reason`` why nothing could be
    learned from it; ``fails only after`` carries the runtime's message.
    """

    dims: Mapping[str, int]
    varied: Mapping[str, Any]
    status: CaseStatus
    reason: str | None = None
    outputs: Mapping[str, OutputError] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The case in a few words: ``T=3, B=2, values=large``."""
        return ", ".join(f"{name}={value}" for name, value in {**self.dims, **self.varied}.items()) or "the given sizes"


@dataclass(frozen=True)
class OutputResult:
    """One output over all cases: the worst errors, what was tolerated in the worst case, in how many cases it was compared."""

    name: str
    status: Literal["equal", "different", "not comparable", "not compared"]
    absolute: float
    relative: float
    allowed: float
    compared: int
    reason: str | None = None


@dataclass(frozen=True)
class FirstDifference:
    """The element that differs most in the first output of the first case that differs.

    ``index`` is () for what has no elements to point at (a different shape, a missing value); for sequences it starts with
    the position in the sequence. ``inside``: in words, which value inside both models is the first to differ there, where one was
    found.
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
    """The outcome of `verify`. True in a condition exactly when ``ok``.

    ``problems`` says why it is not ok apart from differing numbers (interface, loading, nothing compared); ``notes`` holds what
    a reader should know either way. ``inconclusive``: nothing speaks against the second model, but nothing was learned either: the
    first could not be run on anything there was, or gave nothing to compare. ``not_tried`` says what might differ unseen,
    ``limits_hit`` which limits of time and memory ended the comparison early. ``witness``: the inputs of the first case that
    differs. ``times_as_fast``: how many times as fast as the first model the second was in these runs, roughly: see ``bench``.
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
    times_as_fast: float | None = field(default=None, compare=False)

    @property
    def outcome(self) -> Outcome:
        """Return what was found in one word."""
        return "equal" if self.ok else "inconclusive" if self.inconclusive else "different"

    def __bool__(self) -> bool:
        return self.ok

    def summary(self) -> str:
        """One to three lines: what was compared, and the outcome; remarks; what was not tried."""
        ran = [case for case in self.cases if case.status in ("equal", "different")]
        lines = [self._headline(ran)]
        skipped = [case for case in self.cases if case.status == "skipped"]
        remarks = list(self.notes)
        if skipped:
            remarks.insert(0, f"{_count(len(skipped), 'case')} skipped ({_clipped(skipped[0].reason or '')})")
        if remarks:
            lines.append("; ".join(remarks))
        untried = [*self.not_tried, *(f"more, for {limit} was reached" for limit in self.limits_hit)]
        if untried:
            lines.append(f"not tried: {'; '.join(untried)}")
        return "\n".join(map(sentence, lines))

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dicts and lists; element values stay as numpy or Python scalars."""
        return {**asdict(replace(self, witness=None)), "summary": self.summary()}

    def to_html(self) -> str:
        """Return a whole HTML page that needs nothing else."""
        from ortscan.verification.as_html import verification_page

        return verification_page(self.to_dict())

    def _repr_html_(self) -> str:
        from ortscan.verification.as_html import verification_fragment

        return verification_fragment(self.to_dict())

    def _headline(self, ran: Sequence[Case]) -> str:
        if not ran and not any(case.status == "fails only after" for case in self.cases):
            return f"nothing was compared: {'; '.join(self.problems) or 'no case ran on the original'}"
        compared = [output for output in self.outputs if output.compared]
        what = f"compared {_count(len(compared), 'output')} on {_count(len(ran), 'case')}{_ranges(ran)}"
        if self.ok:
            worst = max((output.absolute for output in compared), default=0.0)
            return f"{what}: equal (worst error {_short(worst)})"
        differs = [] if self.first_difference is None else [_describe(self.first_difference)]
        failed = any(case.status == "fails only after" for case in self.cases)
        return f"{what}: {'different' if differs or failed else 'not proven equal'}: {'; '.join([*differs, *self.problems])}"


def _describe(first: FirstDifference) -> str:
    where = f" at {list(first.index)}" if first.index else ""
    inside = f"; {first.inside}" if first.inside else ""
    return f"output '{first.output}'{where} {first.reason} ({first.case.label}){inside}"


def _ranges(cases: Sequence[Case]) -> str:
    """``: T in 1, 2, 3; B in 1, 3``."""
    seen: dict[str, set[int]] = {}
    for case in cases:
        for name, size in case.dims.items():
            seen.setdefault(name, set()).add(size)
        for name, value in case.varied.items():
            if isinstance(value, int):
                seen.setdefault(name, set()).add(value)
    text = "; ".join(f"{name} in {', '.join(map(str, sorted(sizes)))}" for name, sizes in seen.items())
    return f": {text}" if text else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 3] + "..."


def _short(number: float) -> str:
    return f"{number:.1g}".replace("e-0", "e-").replace("e+0", "e+")
