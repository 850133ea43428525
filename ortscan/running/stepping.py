"""Run a loop in Python: call the session of a step once for each step.

The results are what the whole model must return, and the time is what the whole model saves.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ortscan.ort.element_types import numpy_type
from ortscan.running.runner import ModelSession, RunOutcome
from ortscan.running.specs import SessionSpec
from rewrites.stepping.initial_states import Fill
from rewrites.stepping.step_roles import StepRoles

__all__ = ["StepByStep", "run_steps"]


def run_steps(
    run: Callable[[dict[str, Any]], Sequence[Any]],
    roles: StepRoles,
    step_inputs: Sequence[SessionSpec],
    step_outputs: Sequence[SessionSpec],
    feed: Mapping[str, Any],
) -> list[Any]:
    """Return the outputs of the whole loop, in the order of ``roles.outputs``.

    Args:
        run: a function that runs the step on its inputs, and returns its outputs.
        roles: the roles of the inputs and outputs of the step.
        step_inputs: the declared inputs of the step.
        step_outputs: the declared outputs of the step.
        feed: the inputs of the whole loop. If they allow no step, stacked outputs are empty, and their free sizes are 0.

    Raises:
        ValueError: the scanned inputs have no rows.
    """
    roles_of_inputs = {*roles.states, *roles.scan, roles.counter, roles.limit}
    inputs = {name: value for name, value in feed.items() if name not in roles_of_inputs}
    for name in roles.states:
        start = roles.initial.get(name)
        inputs[name] = feed[name] if start is None else start.array(feed) if isinstance(start, Fill) else start
    counter = next((spec for spec in step_inputs if spec.name == roles.counter), None)
    sizes = [1] * len(counter.dims or ()) if counter is not None else []
    scanned = {name: np.moveaxis(feed[name], axis, 0) for name, axis in roles.scan.items()}
    stacks: dict[str, list[Any]] = {name: [] for name in roles.stack}
    steps = _most_steps(roles, feed, scanned)
    if steps < 1 and roles.limit is None:
        raise ValueError("the scanned inputs have no rows, and onnxruntime refuses a Scan without steps")
    for step in range(steps):
        inputs.update({name: rows[step, ...] for name, rows in scanned.items()})
        if counter is not None:
            inputs[counter.name] = np.full(sizes, step, numpy_type(counter.elem_type))
        results = {spec.name: value for spec, value in zip(step_outputs, run(inputs), strict=True)}
        for name, values in stacks.items():
            values.append(results[name])
        inputs.update({name: results[source] for name, source in roles.states.items()})
        if roles.stop is not None and results[roles.stop].all():
            break
    returned = {source: inputs[name] for name, source in reversed(list(roles.states.items()))}
    for spec in step_outputs:
        if spec.name in stacks:
            returned[spec.name] = _stacked(stacks[spec.name], roles.stack[spec.name], spec)
    return [returned[name] for name in roles.outputs]


def _most_steps(roles: StepRoles, feed: Mapping[str, Any], scanned: Mapping[str, Any]) -> int:
    limits = [len(rows) for rows in scanned.values()]
    if roles.limit is not None:
        limits.append(roles.limit if isinstance(roles.limit, int) else int(feed[roles.limit]))
    return min(limits)


def _stacked(values: Sequence[Any], axis: int, spec: SessionSpec) -> Any:
    if len({np.shape(value) for value in values}) > 1:
        raise ValueError(f"the size of '{spec.name}' changes from step to step, so it cannot be stacked")
    if values:
        return np.stack(values, axis)
    sizes = [dim if isinstance(dim, int) else 0 for dim in spec.dims or ()]
    return np.empty([*sizes[:axis], 0, *sizes[axis:]], numpy_type(spec.elem_type))


class StepByStep:
    """A `ModelSession` that computes the whole loop with a session of its step.

    Args:
        step: the session of the step.
        roles: the roles of the inputs and outputs of the step.
        inputs, outputs: the declared inputs and outputs of the step.
    """

    def __init__(self, step: ModelSession, roles: StepRoles, inputs: Sequence[SessionSpec], outputs: Sequence[SessionSpec]) -> None:
        self.outputs = list(roles.outputs)
        self._step, self._roles, self._specs = step, roles, (inputs, outputs)

    @property
    def error(self) -> str | None:
        """The reason why there is no session of the step, or None."""
        return self._step.error

    @property
    def loading_timed_out(self) -> bool:
        """True if creating the session of the step took longer than the time limit."""
        return self._step.loading_timed_out

    def run(self, feed: Mapping[str, Any], seconds: float | None = None) -> RunOutcome:
        """Run the loop on ``feed``. If all steps together take longer than ``seconds``, the run fails."""
        started, steps = time.perf_counter(), 0
        failures: list[RunOutcome] = []

        def run(inputs: dict[str, Any]) -> Sequence[Any]:
            nonlocal steps
            steps += 1
            left = None if seconds is None else max(1e-3, seconds - (time.perf_counter() - started))
            outcome = self._step.run(inputs, left)
            if outcome.values is None:
                failures.append(outcome)
                raise ValueError(outcome.error)
            return outcome.values

        try:
            values = run_steps(run, self._roles, *self._specs, feed)
        except (ValueError, IndexError) as error:
            if failures:
                return failures[0]
            return RunOutcome(None, str(error), time.perf_counter() - started)
        return RunOutcome(values, None, time.perf_counter() - started, steps=steps if self._roles.stop is not None else None)
