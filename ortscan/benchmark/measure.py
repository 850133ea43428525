"""Benchmark models: first run them in subprocesses, then time them in rounds.

The trial runs in subprocesses also measure the peak memory. A brief measurement has no subprocesses if the models cannot crash.

A model may crash, exhaust the memory or never end. For example, a loop with a computed condition may run forever on generated
inputs. Therefore each trial run has a timeout. After two timeouts, no further inputs are tried.
"""

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ortscan.benchmark.bench_inputs import BenchInputs, bench_inputs, check_effort, given_sizes
from ortscan.benchmark.result import Bench, BenchedModel, SizeResult
from ortscan.benchmark.rounds import clock_for, timed_in_rounds
from ortscan.benchmark.timed_session import TimedSession, times_of_loops
from ortscan.modelio import AnyModel
from ortscan.modelio.protos import locations_in
from ortscan.modelio.source import ModelSource, open_source
from ortscan.native.library import library_path
from ortscan.running.crash_risks import crash_risks
from ortscan.running.own_process import OwnProcessRunner
from ortscan.running.runner import ModelSession, Runner, on_one_thread
from ortscan.verification.inputs.given_inputs import Given
from ortscan.verification.inputs.integers import ATTEMPTS
from ortscan.verification.inputs.interface import interface_differences
from ortscan.verification.inputs.point import Point
from ortscan.verification.inputs.shapes import given_shapes
from rewrites.base.errors import OptionError, UnsupportedModel
from rewrites.base.plain_text import plain
from rewrites.native.operator_names import DOMAIN

__all__ = ["ROUNDS", "SECONDS", "StillRunning", "measure", "names_for"]

ROUNDS = 9
"""With 9 rounds the 95 % confidence interval excludes the smallest and the largest ratio."""
SECONDS = 10.0
_LONGEST_RUN, _LONGEST_RUNS = 10.0, 6.0
"""The timeout of a run: in seconds, and as a multiple of the seconds for all rounds. The larger value counts."""
_LONGEST_LOAD = 600.0
_MOST_STOPPED = 2
_CPU = ("CPUExecutionProvider",)


class StillRunning(UnsupportedModel):
    """A model cannot be timed because its runs did not end within their time limit."""


def measure(
    models: Mapping[str, AnyModel | ModelSource],
    *,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    sizes: Mapping[str, int | Sequence[int]] | None = None,
    inputs: Given | None = None,
    threads: int = 1,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    profile: bool = True,
    brief: bool = False,
    run_seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Bench:
    """Time ``models`` and compare each model with the first.

    Args:
        models: the models by their names in the result.
        profile: True to measure the time of each loop too.
        brief: True to time only the first sizes, and to measure no peak memory. Then the trial runs need no subprocesses, unless
            the models may crash.
        run_seconds: the time limit of a trial run. By default it follows from ``seconds``.
        progress: a function that is called with the number of finished rounds and the number of all rounds.
        shapes, sizes, inputs, threads, rounds, seconds: the options of ``ortscan.bench``.

    Raises:
        OptionError: an option is invalid.
        UnsupportedModel: the models cannot be timed.
    """
    import onnxruntime

    check_effort(threads, rounds, seconds)
    wanted = given_shapes(shapes), given_sizes(sizes)
    if not models:
        raise OptionError("bench needs at least one model.")
    names = list(models)
    with ExitStack() as stack:
        sources = [model if isinstance(model, ModelSource) else open_source(model, stack) for model in models.values()]
        for name, source in zip(names[1:], sources[1:], strict=True):
            for difference in interface_differences(sources[0].proto, source.proto):
                raise OptionError(f"{names[0]} and {name} cannot be run on the same inputs: {difference}.")
        chosen = bench_inputs([source.proto for source in sources], *wanted, inputs)
        if brief:
            del chosen.points[1:]
        run_seconds = max(_LONGEST_RUN, _LONGEST_RUNS * seconds) if run_seconds is None else run_seconds
        isolated = not brief or chosen.may_crash or any(crash_risks(source.proto) for source in sources)
        trial = _Trial(names, sources, stack, run_seconds, isolated)
        timed, notes = trial.feeds(chosen)
        peaks = trial.close()
        load = [partial(TimedSession, source, name, threads) for source, name in zip(sources, names, strict=True)]
        records = timed_in_rounds(load, [feed for _, feed in timed], rounds, seconds, clock_for(threads), progress)
        results = [
            SizeResult({**point.sizes, **point.trips}, [record.timing(number) for record in records])
            for number, (point, _) in enumerate(timed)
        ]
        benched = []
        for name, source, record, peak, timing in zip(names, sources, records, peaks, results[0].timings, strict=True):
            load_seconds = statistics.median(record.loads)
            model = BenchedModel(name, _file_bytes(source), load_seconds, record.loads, peak)
            loops = times_of_loops(partial(TimedSession, source, name, threads), timed[0][1], timing.median) if profile else []
            if loops is None:
                notes.append(f"the loops of {name} were not timed: its profile is too large")
            benched.append(replace(model, loops=loops or []))
    is_compiled = any(opset.domain == DOMAIN for source in sources for opset in source.proto.opset_import)
    has_library = library_path() is not None if is_compiled else None
    return Bench(benched, results, threads, len(records[0].loads), onnxruntime.__version__, notes, has_library)


def names_for(models: Sequence[object]) -> list[str]:
    """Return a unique name for each model: its file name, its path if file names repeat, or its number."""
    paths = [Path(model) if isinstance(model, str | os.PathLike) else None for model in models]
    names = [f"model {number}" if path is None else path.name for number, path in enumerate(paths, 1)]
    full = [
        str(path) if names.count(name) > 1 and paths.count(path) == 1 else name for name, path in zip(names, paths, strict=True)
    ]
    return [plain(name) if full.count(name) == 1 else f"{plain(name)} ({number})" for number, name in enumerate(full, 1)]


def _file_bytes(source: ModelSource) -> int:
    """Return the size in bytes of a model, including its external data."""
    if isinstance(source.target, str):
        own, folder = Path(source.target).stat().st_size, Path(source.target).parent
    else:
        own, folder = len(source.target), Path(source.folder or "")
    return own + sum((folder / name).stat().st_size for name in locations_in(source.proto))


class _Trial:
    """Trial runs of models.

    Closing ``stack`` ends all subprocesses. ``run_seconds`` is the timeout of a run. If ``isolated`` is True, each model runs in
    its own subprocess.
    """

    def __init__(
        self, names: Sequence[str], sources: Sequence[ModelSource], stack: ExitStack, run_seconds: float, isolated: bool
    ) -> None:
        self._names, self._run_seconds, self._stopped = names, run_seconds, 0
        self._subprocesses: list[OwnProcessRunner] = []
        self._runners: list[ModelSession] = []
        for source in sources:
            outputs = [output.name for output in source.proto.graph.output]
            if isolated:
                self._subprocesses.append(OwnProcessRunner(source, outputs, _CPU, seconds=_LONGEST_LOAD))
                stack.callback(self._subprocesses[-1].close)
                self._runners.append(self._subprocesses[-1])
            else:
                self._runners.append(Runner(source, outputs, _CPU, on_one_thread, seconds=_LONGEST_LOAD))

    def feeds(self, chosen: BenchInputs) -> tuple[list[tuple[Point, Mapping[str, Any]]], list[str]]:
        """Try the models at each of the chosen sizes.

        Returns:
            A pair of lists. The first has the sizes at which all models run, each with its inputs. The second has a note on each
            of the other sizes, with the reason.

        Raises:
            StillRunning: runs timed out, and the models run at none of the sizes.
            UnsupportedModel: the models run at none of the sizes for another reason.
        """
        for name, runner in zip(self._names, self._runners, strict=True):
            if runner.error is not None:
                raise UnsupportedModel(f"{name} does not load on onnxruntime: {runner.error}.")
        feeds: list[tuple[Point, Mapping[str, Any]]] = []
        refused: list[str] = []
        for point in chosen.points:
            if self._stopped and not feeds:
                break  # the other sizes are larger
            feed, why = self._feed(chosen, point)
            if feed is None:
                label = ", ".join(f"{name}={size}" for name, size in {**point.sizes, **point.trips}.items())
                refused.append(f"not timed at {label or 'fixed sizes'}: {why}")
            else:
                feeds.append((point, feed))
        if not feeds and chosen.usual:
            for point in chosen.fallbacks():
                feed, _ = self._feed(chosen, point)
                if feed is not None:
                    feeds.append((point, feed))
                    break
                if self._stopped >= _MOST_STOPPED:
                    break
        if not feeds and self._stopped:
            raise StillRunning(f"There is nothing to time: {refused[0]}; a loop may not end on generated inputs.")
        if not feeds:
            raise UnsupportedModel(f"There is nothing to time: {refused[0]}.")
        return feeds, refused

    def _feed(self, chosen: BenchInputs, point: Point) -> tuple[Mapping[str, Any] | None, str]:
        """Try inputs with the sizes ``point`` on all models.

        If a model rejects the inputs, inputs with other integers are tried.

        Returns:
            A pair: the inputs that all models accept and "", or None and the reason why there are no such inputs.
        """
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
        """End the trial, and return the peak memory of each model. It is None without subprocesses."""
        peaks = [runner.peak_bytes() for runner in self._subprocesses]
        for runner in self._subprocesses:
            runner.close()
        return peaks or [None] * len(self._runners)
