"""Run one case on both models and compare the outputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ortscan.running.budget import RUN_SECONDS
from ortscan.running.runner import ModelSession, RunOutcome
from ortscan.verification.inputs.cases import Inputs
from ortscan.verification.inputs.point import PlannedCase
from ortscan.verification.judge.compare_outputs import SPECIAL, Comparer, RunLimit
from ortscan.verification.judge.compare_values import Gap
from ortscan.verification.judge.guards import LETS_IN, Guards
from ortscan.verification.result import EXECUTED_STEPS, Case, CaseStatus, OutputError

__all__ = ["Judge", "Judged"]

_SHORTEST_LIMIT = 1.0


@dataclass(frozen=True)
class Judged:
    """The outcome of one case, with all measurements.

    Attributes:
        planned: the planned case.
        case: the case with its outcome, as it is reported.
        gaps: the difference between both models for each output.
        witness: the inputs, and the outputs of the rewritten model. None unless this is the first case in which outputs differ.
        timed_out: True if a run was stopped, because it exceeded its time limit.
    """

    planned: PlannedCase
    case: Case
    gaps: Mapping[str, Gap] = field(default_factory=dict)
    witness: tuple[Mapping[str, Any], Sequence[Any]] | None = None
    timed_out: bool = False

    @property
    def ran(self) -> bool:
        """True if the original ran in this case without an error."""
        return self.case.status != "skipped"


@dataclass
class Judge:
    """Run cases on both models, and compare the outputs. Remember facts that are useful for later cases.

    Attributes:
        before: a session of the original.
        after: a session of the rewritten model.
        comparer: compares the outputs of both models.
        limit: the time limit of a run.
        guards: the guards of the original and of the rewritten model. They are checked before each run in this process. If models
            run in subprocesses, ``guards`` is empty.
        stopped: in the search for sizes, the number of runs that were stopped or that crashed their process.
    """

    before: ModelSession
    after: ModelSession
    comparer: Comparer
    limit: RunLimit
    guards: Sequence[Guards] = ()
    stopped: int = 0
    _attempts: dict[str, str] = field(default_factory=dict)
    _witnessed: bool = False

    def judge(self, plan: PlannedCase, inputs: Inputs) -> Judged:
        """Run a case on both models, and compare the outputs.

        If the original rejects the inputs, the integers are drawn in another way, and the original runs again. Once the original
        accepts the inputs, the rewritten model runs on the same inputs.
        """
        first_error, timed_out, kind = None, False, plan.point.kind
        for attempt in sorted(plan.attempts, key=lambda a: a != self._attempts.get(kind)):
            feed = inputs.feed(plan.point, attempt)
            if self.guards and (risk := self.guards[0].obstacle(feed)) is not None:
                return _without_comparison(plan, "", "skipped", f"the original was not run: {risk}")
            outcome = self.before.run(feed, self.limit.seconds())
            if outcome.values is not None:
                self._attempts[kind], self.limit.slowest = attempt, max(self.limit.slowest, outcome.seconds)
                return self._judge_run(plan, attempt, feed, outcome)
            timed_out = timed_out or outcome.timed_out
            first_error = first_error or outcome.error
            if timed_out or outcome.died:
                break
        only = "" if timed_out or self.after.run(feed, self.limit.seconds()).values is None else "only "
        return _without_comparison(plan, "", "skipped", f"{only}the original fails: {first_error}", timed_out)

    def refusals(self, plan: PlannedCase, inputs: Inputs) -> list[str]:
        """Run the original with each way to draw integers, until it runs without an error.

        Return the errors if every run fails, otherwise an empty list. After a timeout or a crash, no other way is tried.
        """
        errors = []
        for feed in (inputs.feed(plan.point, attempt) for attempt in plan.attempts):
            if self.guards and (risk := self.guards[0].obstacle(feed)) is not None:
                return [risk]
            outcome = self.before.run(feed, self.limit.seconds())
            errors.append(outcome.error or "")
            self.stopped += outcome.timed_out or outcome.died
            if outcome.values is not None or outcome.timed_out or outcome.died:
                return errors if outcome.values is None else []
        return errors

    def _judge_run(self, plan: PlannedCase, attempt: str, feed: Mapping[str, Any], expected: RunOutcome) -> Judged:
        if self.guards and (risk := self.guards[1].obstacle(feed)) is not None:
            status: CaseStatus = "fails only after" if risk == LETS_IN else "skipped"
            return _without_comparison(plan, attempt, status, f"the result was not run: {risk}")
        budget = self.limit.budget
        outcome = self.after.run(feed, min(max(_SHORTEST_LIMIT, budget.left()), max(RUN_SECONDS, 10 * expected.seconds)))
        if outcome.timed_out and budget.is_spent():
            return _without_comparison(plan, attempt, "skipped", f"no time was left for the result: {outcome.error}", True)
        if outcome.exhausted:
            return _without_comparison(plan, attempt, "skipped", f"there was not enough memory for the result: {outcome.error}")
        if outcome.values is None:
            return _without_comparison(plan, attempt, "fails only after", outcome.error)
        gaps = self.comparer.compare(plan.point.kind, feed, expected.values or (), outcome.values)
        if not gaps:
            special = plan.point.kind in SPECIAL
            unlike = "is computed from NaN or infinity by a recurrent node" if special else "differs from run to run"
            return _without_comparison(plan, attempt, "skipped", f"every output of the original {unlike}")
        status = "different" if any(gap.reason for gap in gaps.values()) else "equal"
        errors = {n: OutputError(g.absolute, g.relative, g.allowed, g.reason) for n, g in gaps.items()}
        steps = {} if expected.steps is None else {EXECUTED_STEPS: expected.steps}
        case = Case(plan.point.sizes, plan.varied(attempt) | steps, status, outputs=errors)
        if status == "equal" or self._witnessed:
            return Judged(plan, case, gaps)
        self._witnessed = True
        return Judged(plan, case, gaps, (feed, outcome.values))


def _without_comparison(plan: PlannedCase, attempt: str, status: CaseStatus, reason: str | None, timed_out: bool = False) -> Judged:
    return Judged(plan, Case(plan.point.sizes, plan.varied(attempt), status, reason), timed_out=timed_out)
