"""Runs models in subprocesses before they are timed: there one may crash, use memory, or never end.

A loop whose condition is computed may run forever on generated inputs. Each run has a time limit, and after two runs that were
stopped no other inputs are tried.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from ortscan.benchmark.cases import BenchInputs
from ortscan.modelio.source import Source
from ortscan.running.own_process import OwnProcessRunner
from ortscan.verification.values.make_value import ATTEMPTS
from ortscan.verification.values.point import Point
from rewrites.base.errors import UnsupportedModel

__all__ = ["StillRunning", "Trial"]

_LONGEST_LOAD = 600.0
_MOST_STOPPED = 2
_CPU = ("CPUExecutionProvider",)


class StillRunning(UnsupportedModel):
    """A model cannot be timed because its runs did not end within their time limit."""


class Trial:
    """The subprocesses, one for each model. ``stack`` ends them; ``run_seconds`` is the time limit of one run."""

    def __init__(self, names: Sequence[str], sources: Sequence[Source], stack: ExitStack, run_seconds: float) -> None:
        self._names, self._run_seconds, self._stopped = names, run_seconds, 0
        self._runners = []
        for source in sources:
            outputs = [output.name for output in source.proto.graph.output]
            runner = OwnProcessRunner(source, outputs, _CPU, seconds=_LONGEST_LOAD)
            stack.callback(runner.close)
            self._runners.append(runner)

    def feeds(self, chosen: BenchInputs) -> tuple[list[tuple[Point, Mapping[str, Any]]], list[str]]:
        """Return inputs that all models run on, for each choice of sizes, and notes on those that they do not run on.

        Raises UnsupportedModel if there are none, StillRunning if that is because runs did not end.
        """
        for name, runner in zip(self._names, self._runners, strict=True):
            if runner.error is not None:
                raise UnsupportedModel(f"{name} does not load on onnxruntime: {runner.error}.")
        found: list[tuple[Point, Mapping[str, Any]]] = []
        refused: list[str] = []
        for point in chosen.points:
            if self._stopped and not found:
                break  # the other sizes are larger
            feed, why = self._feed(chosen, point)
            if feed is None:
                label = ", ".join(f"{name}={size}" for name, size in {**point.sizes, **point.trips}.items())
                refused.append(f"not timed at {label or 'fixed sizes'}: {why}")
            else:
                found.append((point, feed))
        if not found and chosen.usual:
            for point in chosen.fallbacks():
                feed, _ = self._feed(chosen, point)
                if feed is not None:
                    found.append((point, feed))
                    break
                if self._stopped >= _MOST_STOPPED:
                    break
        if not found and self._stopped:
            raise StillRunning(f"There is nothing to time: {refused[0]}; perhaps a loop does not end on generated inputs.")
        if not found:
            raise UnsupportedModel(f"There is nothing to time: {refused[0]}.")
        return found, refused

    def _feed(self, chosen: BenchInputs, point: Point) -> tuple[Mapping[str, Any] | None, str]:
        """Return the inputs at ``point``, with other integers while a model refuses them, and why there are none."""
        first = ""
        for attempt in ATTEMPTS:
            feed = chosen.inputs.feed(point, attempt)
            why = ""
            for name, runner in zip(self._names, self._runners, strict=True):
                outcome = runner.run(feed, self._run_seconds)
                if outcome.values is None:
                    why = f"{name} does not run: {outcome.error}"
                    break
            if not why:
                return feed, ""
            first = first or why
            self._stopped += outcome.timed_out
            if outcome.timed_out or outcome.died:
                break
        return None, first

    def close(self) -> list[int | None]:
        """End the processes, and return what each took at its peak."""
        peaks = [runner.peak_bytes() for runner in self._runners]
        for runner in self._runners:
            runner.close()
        return peaks
