"""Time a model of a whole loop against a Python loop that runs the model of a step."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from ortscan.benchmark.bench_inputs import BenchInputs, bench_inputs
from ortscan.benchmark.result import SizeResult
from ortscan.benchmark.rounds import Loaded, clock_for, timed_in_rounds
from ortscan.benchmark.timed_session import TimedSession
from ortscan.errors import OrtscanWarning
from ortscan.modelio import AnyModel
from ortscan.modelio.source import ModelSource, open_source
from ortscan.report.ratio import Speedup
from ortscan.running.specs import input_specs, output_specs
from ortscan.running.stepping import run_steps
from ortscan.verification.inputs.given_inputs import Given
from ortscan.verification.inputs.integers import ATTEMPTS
from ortscan.verification.result import EXECUTED_STEPS
from rewrites.base.errors import OrtscanError
from rewrites.stepping.step_roles import StepRoles

__all__ = ["TimedSteps", "time_steps"]

_SECONDS, _ROUNDS = 1.0, 9


class TimedSteps:
    """A session of a step, of which a run is a Python loop over all steps.

    Args:
        step: the model of a step.
        roles: the roles of the inputs and outputs of the step.

    Attributes:
        load_seconds: the time to load the model.
        executed: the number of steps in the last run.
    """

    def __init__(self, step: ModelSource, roles: StepRoles) -> None:
        self._session = TimedSession(step, "the step", 1)
        self._roles, self._specs = roles, (input_specs(step.proto.graph), output_specs(step.proto.graph))
        self.load_seconds = self._session.load_seconds
        self.executed = 0

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        """Run all steps and return the results of the loop."""
        self.executed = 0
        return run_steps(self._run_step, self._roles, *self._specs, feed)

    def _run_step(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        self.executed += 1
        return self._session.run(feed)


def time_steps(
    step: AnyModel,
    whole: AnyModel,
    roles: StepRoles,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    inputs: Given | None = None,
) -> Speedup | None:
    """Return how much faster ``whole`` is than a Python loop that calls the session of ``step``.

    Both run on one thread. Return None if no generated inputs fit the models.

    Args:
        step: the model of a step.
        whole: the model of the whole loop.
        roles: the roles of the inputs and outputs of the step.
        shapes: the shapes of inputs of the whole loop.
        inputs: the caller's inputs of the whole loop; None for generated inputs.
    """
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore", OrtscanWarning)
        one, loop = open_source(step, stack), open_source(whole, stack)
        load: list[Callable[[], Loaded]] = [partial(TimedSteps, one, roles), partial(TimedSession, loop, "the whole loop", 1)]
        try:
            chosen = bench_inputs([loop.proto, loop.proto], shapes or {}, {} if shapes or inputs else _steps(loop, roles), inputs)
            steps, whole_loop = TimedSteps(one, roles), TimedSession(loop, "the whole loop", 1)
        except OrtscanError:
            return None
        for number, point in enumerate(chosen.points):
            feed = _accepted_feed(chosen, number, [steps, whole_loop])
            if feed is not None:
                ends_early = roles.stop is not None or roles.limit is not None
                executed = {EXECUTED_STEPS: steps.executed} if ends_early else {}
                records = timed_in_rounds(load, [feed], _ROUNDS, _SECONDS, clock_for(1))
                return SizeResult({**point.sizes, **point.trips, **executed}, [each.timing(0) for each in records]).speedup()
    return None


_STEPS = 64


def _steps(loop: ModelSource, roles: StepRoles) -> dict[str, list[int]]:
    """Return the number of rows of the scanned inputs for the timing, by the name of their axis."""
    dims = {spec.name: spec.dims or () for spec in input_specs(loop.proto.graph)}
    return {str(dims[name][axis]): [_STEPS] for name, axis in roles.scan.items()}


def _accepted_feed(chosen: BenchInputs, number: int, sessions: Sequence[Loaded]) -> Mapping[str, Any] | None:
    """Return inputs at a combination of sizes that both sessions accept, or None.

    ``number``: the number of the combination.
    """
    for attempt in ATTEMPTS:
        feed = chosen.inputs.feed(chosen.points[number], attempt)
        try:
            for session in sessions:
                session.run(feed)
        except (OrtscanError, ValueError, IndexError):
            continue
        return feed
    return None
