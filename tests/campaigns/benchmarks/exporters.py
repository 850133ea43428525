"""What models of real exporters gain: ``python -m tests.campaigns benchmarks.exporters``, a line for each, then the tables of the documents.

For each model of the corpus: the original, what ``optimize`` makes of it, and what it makes of it with ``native``, as sessions of ortscan
have it; interleaved, with one thread. Dimensions that a loop runs over are 64 where they are free, others 1; what the exporter fixed
is what it is. An argument is a part of the names of the models to take; ``--write`` keeps what was found in ``exporters.json``, out
of which ``python -m tests.support.tables`` makes the tables.
"""

import argparse
import os
import platform
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import onnxruntime

import ortscan
from ortscan.benchmark.bench_inputs import BenchInputs, bench_inputs
from ortscan.benchmark.rounds import clock_for, timed_in_rounds
from ortscan.benchmark.timed_session import TimedSession
from ortscan.modelio.source import open_source
from ortscan.report.ratio import ratio_of
from ortscan.verification.inputs.integers import ATTEMPTS
from rewrites.base.errors import OrtscanError, UnsupportedModel
from rewrites.base.plain_text import counted
from tests.support.corpus import CorpusModel, big_corpus, corpus_models
from tests.support.exporter_tables import FOUND, Found, Gain, Loop, gains_table
from tests.support.tables import write_tables

__all__ = ["gain_of", "main"]

_SECONDS, _ROUNDS = 0.6, 6
_NAMES = ("the original", "the optimised model", "the optimised model with compiled loops")


def gain_of(model: CorpusModel) -> Gain:
    """Optimise ``model`` both ways and time it. Raises OrtscanError where it cannot be run."""
    plain, report = ortscan.optimize(model.path, verify=False, report=True)
    native = ortscan.optimize(model.path, verify=False, native=True)
    with ExitStack() as stack:
        sources = [open_source(one, stack) for one in (model.path, plain, native)]
        load = [partial(TimedSession, source, name, 1) for source, name in zip(sources, _NAMES, strict=True)]
        sizes, feed = _runnable(bench_inputs([source.proto for source in sources], {}, {}, None), [one() for one in load])
        _, *others = timed_in_rounds(load, [feed], _ROUNDS, _SECONDS, clock_for(1))
    loops = tuple(Loop(loop.fate, loop.reasons[0].code if loop.reasons else "") for loop in report.loops)
    return Gain(model.name, loops, *(round(ratio_of(record.gains[0]).value, 3) for record in others), sizes=sizes)


def _runnable(chosen: BenchInputs, sessions: list[TimedSession]) -> tuple[dict[str, int], Mapping[str, Any]]:
    """The first of the usual sizes that all models run at, and inputs for it."""
    refused: OrtscanError | None = None
    for point, feed in _feeds(chosen):
        try:
            for session in sessions:
                session.run(feed)
        except OrtscanError as error:
            refused = error
        else:
            return {**point.sizes, **point.trips}, feed
    raise refused or UnsupportedModel("no inputs can be made up.")


def _feeds(chosen: BenchInputs) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    for point in [*chosen.points, *chosen.fallbacks()]:
        for attempt in ATTEMPTS:
            yield point, chosen.inputs.feed(point, attempt)


def main(part: str = "", write: bool = False) -> None:
    """Print a line for each model as it is timed, then the table; ``write``: keep it, which takes the whole corpus."""
    warnings.simplefilter("ignore")
    if write and (part or big_corpus() is None):
        sys.exit("--write takes the whole of the larger corpus: a run without NAME, where ORTSCAN_CORPUS names its folder.")
    busy = os.getloadavg()[0]
    gains = []
    for parameters in corpus_models(only=lambda name: part in name):
        gains.append(gain := gain_of(parameters.values[0]))
        line = f"{gain.model}: {gain.left} of {counted(len(gain.loops), 'loop')} left"
        print(f"{line}, {gain.plain:.2f} x, with compiled loops {gain.native:.2f} x", flush=True)
    found = Found(onnxruntime.__version__, _processor(), os.cpu_count() or 1, round(busy, 1), tuple(gains))
    print(f"\n{gains_table(found)}")
    if write:
        FOUND.write_text(found.to_json(), encoding="utf-8")
        write_tables()


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns benchmarks.exporters")
    parser.add_argument("part", nargs="?", default="", metavar="NAME")
    parser.add_argument("--write", action="store_true")
    main(**vars(parser.parse_args()))
