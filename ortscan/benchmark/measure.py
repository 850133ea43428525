"""Benchmarks models: first in processes of their own, whether they run and on how much memory; then their times, in rounds."""

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from ortscan.benchmark.arguments import check_effort, given_sizes
from ortscan.benchmark.cases import bench_inputs
from ortscan.benchmark.loops import times_of_loops
from ortscan.benchmark.result import Bench, BenchedModel, SizeResult, Timing
from ortscan.benchmark.rounds import Records, timed_in_rounds
from ortscan.benchmark.session import TimedSession
from ortscan.benchmark.trial import Trial
from ortscan.benchmark.turns import clock_for
from ortscan.modelio import AnyModel
from ortscan.modelio.protos import locations_in
from ortscan.modelio.source import Source, open_source
from ortscan.verification.given.arguments import given_shapes
from ortscan.verification.given.inputs import Given
from ortscan.verification.given.interface import interface_differences
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import plain

__all__ = ["ROUNDS", "SECONDS", "measure", "names_for"]

ROUNDS = 9
"""Of so many the noise leaves out the least and the largest, and is still as sure as it has to be."""
SECONDS = 10.0
_LONGEST_RUN, _LONGEST_RUNS = 10.0, 6.0
"""The time limit of a run in seconds, and as a multiple of the seconds for all rounds; the larger holds."""


def measure(
    models: Mapping[str, AnyModel],
    *,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    sizes: Mapping[str, int | Sequence[int]] | None = None,
    inputs: Given | None = None,
    threads: int = 1,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    profile: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Bench:
    """Time ``models``, by the names that they are to be called in the outcome; others are compared with the first.

    ``profile``: whether to find the time of each loop too; the rest is as ``ortscan.bench`` says. Raises OptionError and
    UnsupportedModel.
    """
    import onnxruntime

    check_effort(threads, rounds, seconds)
    wanted = given_shapes(shapes), given_sizes(sizes)
    if not models:
        raise OptionError("bench takes one model or more.")
    names = list(models)
    with ExitStack() as stack:
        sources = [open_source(model, stack) for model in models.values()]
        for name, source in zip(names[1:], sources[1:], strict=True):
            for difference in interface_differences(sources[0].proto, source.proto):
                raise OptionError(f"{names[0]} and {name} cannot be run on the same inputs: {difference}.")
        chosen = bench_inputs([source.proto for source in sources], *wanted, inputs)
        tried = Trial(names, sources, stack, max(_LONGEST_RUN, _LONGEST_RUNS * seconds))
        found, notes = tried.feeds(chosen)
        peaks = tried.close()
        load = [partial(TimedSession, source, name, threads) for source, name in zip(sources, names, strict=True)]
        records = timed_in_rounds(load, [feed for _, feed in found], rounds, seconds, clock_for(threads), progress)
        results = [
            SizeResult({**point.sizes, **point.trips}, [_timing(record, number) for record in records])
            for number, (point, _) in enumerate(found)
        ]
        benched = []
        for name, source, record, peak, timing in zip(names, sources, records, peaks, results[0].timings, strict=True):
            load_seconds = statistics.median(record.loads)
            model = BenchedModel(name, _file_bytes(source), load_seconds, record.loads, peak)
            loops = times_of_loops(partial(TimedSession, source, name, threads), found[0][1], timing.median) if profile else []
            if loops is None:
                notes.append(f"the loops of {name} were not told apart: its profile is too large")
            benched.append(replace(model, loops=loops or []))
    return Bench(benched, results, threads, len(records[0].loads), onnxruntime.__version__, notes)


def names_for(models: Sequence[object]) -> list[str]:
    """Return what to call each model: the name of its file, as much of its path as tells it from others, or its number."""
    paths = [Path(model) if isinstance(model, str | os.PathLike) else None for model in models]
    names = [f"model {number}" if path is None else path.name for number, path in enumerate(paths, 1)]
    full = [
        str(path) if names.count(name) > 1 and paths.count(path) == 1 else name for name, path in zip(names, paths, strict=True)
    ]
    return [plain(name) if full.count(name) == 1 else f"{plain(name)} ({number})" for number, name in enumerate(full, 1)]


def _timing(record: Records, number: int) -> Timing:
    medians = record.medians[number]
    return Timing(statistics.median(medians), min(record.bests[number]), medians, record.gains[number])


def _file_bytes(source: Source) -> int:
    """Count the bytes of a model, and of its external data."""
    if isinstance(source.target, str):
        own, folder = Path(source.target).stat().st_size, Path(source.target).parent
    else:
        own, folder = len(source.target), Path(source.folder or "")
    return own + sum((folder / name).stat().st_size for name in locations_in(source.proto))
