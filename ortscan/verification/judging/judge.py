"""Running one case on both models and saying what came of it.

Works round ORT-LOOP-NO-STEPS-SIZES, ORT-RECURRENT-NAN and ORT-LOGSOFTMAX-NAN.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from ortscan.running.budget import RUN_SECONDS, Budget
from ortscan.running.runner import Runs
from ortscan.verification.cases.planned_case import PlannedCase
from ortscan.verification.cases.planned_cases import Inputs
from ortscan.verification.closeness.compare_values import Gap, Tolerances, compare_values
from ortscan.verification.closeness.rounding_noise import noise_feeds
from ortscan.verification.closeness.scales import History
from ortscan.verification.closeness.sensitivity import Sensitivity
from ortscan.verification.judging.disowned import disowned_outputs
from ortscan.verification.judging.empty_outputs import both_empty, is_empty
from ortscan.verification.judging.guards import LETS_IN, Guards
from ortscan.verification.oracle.in_double import feed_in_double
from ortscan.verification.result import Case, CaseStatus, OutputError

__all__ = ["Judge", "Judged"]

_REPEATS = 2
_SHORTEST_LIMIT = 1.0
_SPECIAL = ("infinite", "NaN")
_SWALLOWED = "what NaN and infinity become was not compared where onnxruntime drops them, as in recurrent nodes or maxima"
_MILD = (
    "output '{}' was compared as far as roundings, of the inputs or inside, leave the original itself",
    "elements of output '{}' that hang on the last digits of the inputs, or of what is computed, or overflow, were not compared",
)
_GUESSED = "sizes of empty outputs were not compared: for a Loop without iterations onnxruntime guesses them"


@dataclass(frozen=True)
class Judged:
    """One case with all that was measured, as the ``seconds`` of both runs; the first that differs keeps its feed and result."""

    planned: PlannedCase
    case: Case
    gaps: Mapping[str, Gap] = field(default_factory=dict)
    witness: tuple[Mapping[str, Any], Sequence[Any]] | None = None
    timed_out: bool = False
    seconds: tuple[float, float] | None = None


@dataclass
class Judge:
    """Runs cases, remembering what holds for later ones.

    Attributes:
        before: the oracle.
        after: what is judged.
        tolerances: what the floats of each output may differ by.
        budget: what time there is for all runs.
        patience: seconds after which a run of the oracle is stopped, None for no limit but the budget.
        shapes_vary: whether the sizes of empty outputs of the oracle mean nothing.
        told: makes the oracle with more sizes declared, to be asked where an output of the oracle is empty and the other is not.
        noisy: makes the oracle with noise in all roundings, where that can be.
        exact: makes the oracle in float64, where that can be.
        swallowing: outputs of nodes that onnxruntime does not let pass NaN and infinity on.
        guards: of the oracle and the other, to be asked before these are run here; none where they run elsewhere.
        draws: whether the oracle is to be run twice on the first case, as it may draw random numbers.
        unstable: outputs that differ between two runs of the oracle.
        disowned: outputs that the oracle computes otherwise where it is written otherwise: see ``disowned``.
        notes: what a reader should know.
        stopped: how many runs in search of sizes had to be stopped, or ended their process.
    """

    before: Runs
    after: Runs
    tolerances: Mapping[str, Tolerances]
    budget: Budget
    patience: float | None
    shapes_vary: bool
    told: Callable[[], Runs]
    noisy: Callable[[], Runs | None]
    exact: Callable[[], Runs | None]
    guards: Sequence[Guards] = ()
    swallowing: Set[str] = frozenset()
    draws: bool = False
    unstable: set[str] = field(default_factory=set)
    disowned: set[str] = field(default_factory=set)
    notes: dict[str, None] = field(default_factory=dict)
    stopped: int = 0
    _attempts: dict[str, str] = field(default_factory=dict)
    _slowest: float = 0.0
    _witnessed: bool = False
    _history: dict[tuple[str, bool], History] = field(default_factory=dict)

    def judge(self, plan: PlannedCase, inputs: Inputs) -> Judged:
        """Run the oracle, with other integers while it refuses, then the other model on the same; compare."""
        first_error, timed_out, kind = None, False, plan.point.kind
        for attempt in sorted(plan.attempts, key=lambda a: a != self._attempts.get(kind)):
            feed = inputs.feed(plan.point, attempt)
            if self.guards and (risk := self.guards[0].let_in(feed)) is not None:
                return Judged(plan, Case(plan.point.sizes, plan.varied(""), "skipped", f"the original was not run: {risk}"))
            outcome = self.before.run(feed, self._limit())
            if outcome.values is not None:
                self._attempts[kind], self._slowest = attempt, max(self._slowest, outcome.seconds)
                return self._judge_run(plan, attempt, feed, outcome.values, outcome.seconds)
            timed_out = timed_out or outcome.timed_out
            first_error = first_error or outcome.error
            if timed_out or outcome.died:
                break
        only = "" if timed_out or self.after.run(feed, self._limit()).values is None else "only "
        case = Case(plan.point.sizes, plan.varied(""), "skipped", f"{only}the original fails: {first_error}")
        return Judged(plan, case, timed_out=timed_out)

    def refusals(self, plan: PlannedCase, inputs: Inputs) -> list[str]:
        """Return what the oracle says against the case, however its integers are drawn; nothing where it runs."""
        said = []
        for feed in (inputs.feed(plan.point, attempt) for attempt in plan.attempts):
            if self.guards and (risk := self.guards[0].let_in(feed)) is not None:
                return [risk]
            outcome = self.before.run(feed, self._limit())
            said.append(outcome.error or "")
            self.stopped += outcome.timed_out or outcome.died
            if outcome.values is not None or outcome.timed_out or outcome.died:
                return said if outcome.values is None else []
        return said

    def _judge_run(
        self, plan: PlannedCase, attempt: str, feed: Mapping[str, Any], expected: Sequence[Any], seconds: float
    ) -> Judged:
        varied = plan.varied(attempt)
        if self.guards and (risk := self.guards[1].let_in(feed)) is not None:
            status: CaseStatus = "fails only after" if risk == LETS_IN else "skipped"
            return Judged(plan, Case(plan.point.sizes, varied, status, f"it was not run: {risk}"))
        outcome = self.after.run(feed, min(max(_SHORTEST_LIMIT, self.budget.left()), max(RUN_SECONDS, 10 * seconds)))
        if outcome.timed_out and self.budget.is_spent():
            reason = f"no time was left for the result, {outcome.error}"
            return Judged(plan, Case(plan.point.sizes, varied, "skipped", reason), timed_out=True)
        if outcome.exhausted:
            reason = f"there was not enough memory for the result: {outcome.error}"
            return Judged(plan, Case(plan.point.sizes, varied, "skipped", reason))
        if outcome.values is None:
            return Judged(plan, Case(plan.point.sizes, varied, "fails only after", outcome.error))
        gaps = self._compare(expected, outcome.values, self._sensitivity(plan, feed), tiny=plan.point.kind == "tiny")
        if self.draws or any(gap.reason for gap in gaps.values()):
            self._find_unstable(feed, expected)
            self.draws = False
            gaps = {name: gap for name, gap in gaps.items() if name not in self.unstable}
        if plan.point.kind in _SPECIAL:
            gaps = self._without_swallowed(gaps)
        else:
            names = self.before.outputs
            self.disowned |= disowned_outputs(names, gaps, expected, lambda: self._noisy(feed, 0.0, 1.0), self.tolerances)
        if self.shapes_vary:
            gaps |= self._without_guesses(gaps, feed, expected, outcome.values)
        if not gaps:
            from_special = "is computed from NaN or infinity by a recurrent node"
            unlike = from_special if plan.point.kind in _SPECIAL else "differs from run to run"
            reason = f"every output of the original {unlike}"
            return Judged(plan, Case(plan.point.sizes, varied, "skipped", reason))
        status = "different" if any(gap.reason for gap in gaps.values()) else "equal"
        errors = {n: OutputError(g.absolute, g.relative, g.allowed, g.reason) for n, g in gaps.items()}
        case = Case(plan.point.sizes, varied, status, outputs=errors)
        if status == "equal" or self._witnessed:
            return Judged(plan, case, gaps, seconds=(seconds, outcome.seconds))
        self._witnessed = True
        return Judged(plan, case, gaps, (feed, outcome.values))

    def _without_guesses(
        self, gaps: Mapping[str, Gap], feed: Mapping[str, Any], expected: Sequence[Any], actual: Sequence[Any]
    ) -> dict[str, Gap]:
        """Return what is apart of outputs that are empty for the oracle alone, once it is told the sizes of what Loops stack."""
        pairs = enumerate(zip(self.before.outputs, expected, actual, strict=True))
        places = {name: place for place, (name, old, new) in pairs if name in gaps and is_empty(old) and not is_empty(new)}
        told = self.told() if places else None
        values = told.run(feed, self._limit()).values if told is not None and told.error is None else None
        if values is None:
            return {}
        found = {name: compare_values(values[place], actual[place], self.tolerances[name]) for name, place in places.items()}
        equal = {name: gap for name, gap in found.items() if gap.reason is None}
        if equal:
            self.notes[_GUESSED] = None
        return equal

    def _limit(self) -> float:
        """How long a run may take: much longer than the oracle ever took, at most what patience and budget allow.

        There is some time for the first cases, whatever the budget: else a busy machine would leave nothing compared.
        """
        left = max(self.budget.left(), min(_SHORTEST_LIMIT, 20 * self._slowest) if self._slowest else _SHORTEST_LIMIT)
        limit = left if self.patience is None else min(left, self.patience)
        return limit if not self._slowest else min(limit, max(_SHORTEST_LIMIT, 200 * self._slowest))

    def _without_swallowed(self, gaps: Mapping[str, Gap]) -> dict[str, Gap]:
        """Leave out what differs where a recurrent node took NaN or infinity for a number."""
        differing = [name for name, gap in gaps.items() if gap.reason]
        swallowed = self.swallowing & set(differing)
        if swallowed:
            self.notes[_SWALLOWED] = None
        return {name: gap for name, gap in gaps.items() if name not in swallowed}

    def _sensitivity(self, plan: PlannedCase, feed: Mapping[str, Any]) -> Sensitivity:
        exact, noisy = cache(partial(self._exact, feed)), cache(partial(self._noisy, feed))
        return Sensitivity(exact, noisy, special=plan.point.kind in _SPECIAL)

    def _exact(self, feed: Mapping[str, Any]) -> Sequence[Any] | None:
        runs = self.exact()
        return None if runs is None or runs.error is not None else runs.run(feed_in_double(feed), self._limit()).values

    def _noisy(self, feed: Mapping[str, Any], *roundings: float) -> list[Sequence[Any]]:
        runs = self.noisy()
        if runs is None or runs.error is not None:
            return []
        feeds = [noisy for each in roundings for noisy in noise_feeds(each, feed)]
        return [values for one in feeds if (values := runs.run(one, self._limit()).values) is not None]

    def _compare(
        self, expected: Sequence[Any], actual: Sequence[Any], sensitivity: Sensitivity | None = None, *, tiny: bool = False
    ) -> dict[str, Gap]:
        gaps = {}
        for position, (name, old, new) in enumerate(zip(self.before.outputs, expected, actual, strict=True)):
            if name in self.unstable:
                continue
            if self.shapes_vary and both_empty(old, new):
                self.notes[_GUESSED] = None
                gaps[name] = Gap()
                continue
            tolerances = self.tolerances[name]
            widening = None if sensitivity is None else sensitivity.widening(name, position, tolerances.roundings)
            special = sensitivity is not None and sensitivity.special
            history = self._history.setdefault((name, tiny), History())
            gaps[name] = compare_values(old, new, tolerances, history, widening, special=special)
        for name, left_out in sensitivity.hit.items() if sensitivity is not None else ():
            if gaps[name].reason is None:
                self.notes[_MILD[left_out].format(name)] = None
        return gaps

    def finds_equal(self, expected: Sequence[Any], actual: Sequence[Any], names: Set[str]) -> bool:
        """Whether outputs are the same by all that was learned of them."""
        found = (
            compare_values(old, new, self.tolerances[name], self._history.get((name, False)))
            for name, old, new in zip(self.before.outputs, expected, actual, strict=True)
            if name in names
        )
        return all(gap.reason is None for gap in found)

    def _find_unstable(self, feed: Mapping[str, Any], expected: Sequence[Any]) -> None:
        for _ in range(_REPEATS):
            again = self.before.run(feed, self._limit()).values
            if again is not None:
                gaps = self._compare(expected, again)
                self.unstable.update(name for name, gap in gaps.items() if gap.reason)
