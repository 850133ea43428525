"""Measure how much the outputs of a model change if its weights are stored in fewer bits.

The original and the result run on the same inputs:

    error    = the largest |original - result| of an output / the largest |original| of this output
    decibels = 10 * log10(sum of original ** 2 / sum of (original - result) ** 2)

For integers, booleans and strings, the error is the share of elements that differ.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ortscan.benchmark.bench_inputs import BenchInputs, bench_inputs
from ortscan.modelio import AnyModel
from ortscan.modelio.source import ModelSource, initializer_bytes, open_source
from ortscan.running.budget import FULL_BYTES, FULL_SECONDS, RUN_SECONDS, Budget
from ortscan.running.own_process import OwnProcessRunner
from ortscan.running.runner import ModelSession, Runner
from ortscan.running.specs import input_specs, output_specs, overridable_names
from ortscan.verification.inputs.given_inputs import Given, read_inputs
from ortscan.verification.inputs.integers import ATTEMPTS
from ortscan.verification.inputs.point import Point
from ortscan.verification.judge.tolerances import is_float
from ortscan.verification.oracle.runnable import without_plans
from rewrites.base.errors import InvariantBroken, UnsupportedModel

__all__ = ["ErrorMeter", "WeightError"]

_CPU = ("CPUExecutionProvider",)
_SETS = 3
"""The number of generated sets of inputs."""
_SIZES = ((64, 64), (256, 1), (64, 1))
"""Pairs of a trip count and the size of every other free dimension, such as the batch size. Smaller ones serve large models."""


@dataclass(frozen=True)
class WeightError:
    """The error of a result.

    Attributes:
        relative: the largest error of an output.
        decibels: the smallest ratio of signal to error of an output of floats.
        of_elements: True if ``relative`` is the share of elements that differ.
    """

    relative: float
    decibels: float
    of_elements: bool = False


class ErrorMeter:
    """Runs the original once, and then measures the errors of results.

    Args:
        original: the model whose outputs are correct by definition.
        shapes: the shapes of inputs.
        inputs: the caller's inputs; None for generated inputs.
        seed: the seed of generated inputs.
        stack: removes temporary files, and ends subprocesses.

    Attributes:
        feeds: the sets of inputs on which the original runs.

    Raises:
        OptionError: the inputs do not fit the model.
        UnsupportedModel: the original runs on none of the inputs.
    """

    def __init__(
        self, original: AnyModel, shapes: Mapping[str, Sequence[int | None]], inputs: Given | None, seed: int, stack: ExitStack
    ) -> None:
        self._stack = stack
        source = without_plans(open_source(original, stack), stack)
        self._outputs = [spec.name for spec in output_specs(source.proto.graph)]
        chosen = [bench_inputs([source.proto], shapes, {}, values, _SIZES) for values in _given_sets(source, inputs)]
        self._may_crash = any(each.may_crash for each in chosen)
        session = self._session(source)
        if session.error is not None:
            raise UnsupportedModel(f"The error of the weights cannot be measured: the original does not load: {session.error}.")
        self.feeds: list[Mapping[str, Any]] = []
        expected: list[Sequence[Any]] = []
        why = ""
        for attempts in (attempts for each in chosen for attempts in _feeds_to_try(each, seed, _SETS if inputs is None else 1)):
            for feed in attempts:
                outcome = session.run(feed, RUN_SECONDS)
                if outcome.values is not None:
                    self.feeds.append(feed)
                    expected.append(outcome.values)
                why = why or outcome.error or ""
                if outcome.values is not None or outcome.timed_out or outcome.died:
                    break
        if not self.feeds:
            raise UnsupportedModel(
                f"The error of the weights cannot be measured: the original runs on none of the inputs: {why}; "
                "pass inputs that it accepts."
            )
        self._expected = [list(values) for values in zip(*expected, strict=True)]

    def error_of(self, result: AnyModel) -> WeightError:
        """Return the error of ``result``. Raise InvariantBroken if it does not run where the original runs."""
        with ExitStack() as stack:
            session = self._session(open_source(result, stack))
            outcomes = [session.run(feed, 10 * RUN_SECONDS) for feed in self.feeds] if session.error is None else []
        failed = next((outcome.error for outcome in outcomes if outcome.values is None), session.error)
        if failed is not None:
            raise InvariantBroken(f"The model with smaller weights does not run: {failed}")
        actual = zip(*(outcome.values or () for outcome in outcomes), strict=True)
        errors = [_output_error(old, list(new)) for old, new in zip(self._expected, actual, strict=True)]
        worst = max(errors, key=lambda error: error.relative, default=WeightError(0.0, math.inf))
        return replace(worst, decibels=min((error.decibels for error in errors), default=math.inf))

    def _session(self, source: ModelSource) -> ModelSession:
        if not self._may_crash:
            return Runner(source, self._outputs, _CPU)
        memory = Budget(FULL_SECONDS, FULL_BYTES).process_bytes(initializer_bytes(source.proto))
        worker = OwnProcessRunner(source, self._outputs, _CPU, memory=memory)
        self._stack.callback(worker.close)
        return worker


def _given_sets(source: ModelSource, inputs: Given | None) -> Sequence[Mapping[str, Any] | None]:
    if inputs is None:
        return [None]
    graph = source.proto.graph
    return read_inputs(inputs, input_specs(graph), overridable_names(source.proto), output_specs(graph))[0]


def _feeds_to_try(chosen: BenchInputs, seed: int, count: int) -> Iterator[Iterator[Mapping[str, Any]]]:
    """Yield ``count`` sets of inputs, each as the different ways to draw its integers."""
    sizes = _largest(chosen)
    for number in range(count):
        points: list[Point] = [sizes[number % len(sizes)], *chosen.fallbacks()][: 1 + _SETS]
        drawn = replace(chosen.inputs, seed=seed * _SETS + number)
        yield (drawn.feed(point, attempt) for point in points for attempt in ATTEMPTS)


def _largest(chosen: BenchInputs) -> list[Point]:
    """Return the points that fit into memory. Omit those that another one exceeds."""
    inputs = chosen.inputs
    fitting = [
        point
        for point in chosen.points
        if inputs.budget.allows(max(inputs.bytes_at(point), inputs.inner_sizes.bytes_at(point.sizes)))
    ]
    sizes = [{**point.sizes, **point.trips} for point in fitting]
    return [
        point
        for point, own in zip(fitting, sizes, strict=True)
        if not any(own != other and all(own[name] <= other[name] for name in own) for other in sizes)
    ] or list(chosen.points[-1:])


def _output_error(before: Sequence[Any], after: Sequence[Any]) -> WeightError:
    """Return the error of one output. Both arguments have its values for all sets of inputs."""
    pairs = [pair for old, new in zip(before, after, strict=True) for pair in _arrays(old, new)]
    if any(old.shape != new.shape for old, new in pairs):
        return WeightError(math.inf, -math.inf)
    others = [np.asarray(old != new).ravel() for old, new in pairs if not is_float(old.dtype)]
    share = float(np.concatenate(others).mean()) if sum(each.size for each in others) else 0.0
    largest = error = signal = noise = 0.0
    for old, new in ((old.astype(np.float64), new.astype(np.float64)) for old, new in pairs if is_float(old.dtype)):
        if (np.isfinite(old) != np.isfinite(new)).any():
            return WeightError(math.inf, -math.inf)
        expected = np.where(np.isfinite(old), old, 0.0)
        difference = expected - np.where(np.isfinite(old), new, 0.0)
        largest, error = (max(most, float(np.abs(of).max(initial=0.0))) for most, of in ((largest, expected), (error, difference)))
        signal, noise = signal + float(np.square(expected).sum()), noise + float(np.square(difference).sum())
    relative = error / largest if largest else math.inf if error else 0.0
    ratio = signal / noise if noise else math.inf
    of_elements = share > relative or all(not is_float(old.dtype) for old, _ in pairs)
    return WeightError(max(relative, share), 10 * math.log10(ratio) if ratio else -math.inf, of_elements)


def _arrays(old: Any, new: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the pairs of arrays in two values of an output: an array, or a sequence or map of values."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        old, new = list(old.values()), list(new.values())
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield np.zeros(len(old)), np.zeros(len(new))
            return
        for pair in zip(old, new, strict=True):
            yield from _arrays(*pair)
    elif old is not None and new is not None:
        yield np.asarray(old), np.asarray(new)
