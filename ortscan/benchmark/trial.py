"""Runs models in processes of their own before they are timed: there one may end its process, or never end; and takes memory."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from ortscan.benchmark.cases import BenchInputs
from ortscan.modelio.source import Source
from ortscan.running.own_process import OwnProcessRunner
from ortscan.verification.values.make_value import ATTEMPTS
from ortscan.verification.values.point import Point
from rewrites.base.errors import UnsupportedModel

__all__ = ["Trial"]

_LONGEST_LOAD, _LONGEST_RUN = 600.0, 60.0
_CPU = ("CPUExecutionProvider",)


class Trial:
    """The processes, one a model. ``stack`` ends them."""

    def __init__(self, names: Sequence[str], sources: Sequence[Source], stack: ExitStack) -> None:
        self._names = names
        self._runners = []
        for source in sources:
            outputs = [output.name for output in source.proto.graph.output]
            runner = OwnProcessRunner(source, outputs, _CPU, seconds=_LONGEST_LOAD)
            stack.callback(runner.close)
            self._runners.append(runner)

    def feeds(self, chosen: BenchInputs) -> tuple[list[tuple[Point, Mapping[str, Any]]], list[str]]:
        """Return inputs that all models run on, for each choice of sizes, and notes on those that they do not run on."""
        for name, runner in zip(self._names, self._runners, strict=True):
            if runner.error is not None:
                raise UnsupportedModel(f"{name} does not load on onnxruntime: {runner.error}.")
        found, refused = [], []
        for point in chosen.points:
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
                outcome = runner.run(feed, _LONGEST_RUN)
                if outcome.values is None:
                    why = f"{name} does not run: {outcome.error}"
                    break
            if not why:
                return feed, ""
            first = first or why
            if outcome.timed_out or outcome.died:
                break
        return None, first

    def close(self) -> list[int | None]:
        """End the processes, and return what each took at its peak."""
        peaks = [runner.peak_bytes() for runner in self._runners]
        for runner in self._runners:
            runner.close()
        return peaks
