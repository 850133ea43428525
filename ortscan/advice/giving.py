"""Gives the loops that are left the advice that was found to help."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ortscan.advice.candidates import Candidate, candidates
from ortscan.advice.costs import measure_costs
from ortscan.advice.timing import gain_of
from ortscan.advice.trying import Tried, tried
from ortscan.modelio import ModelLike
from ortscan.modelio.source import open_source, weight
from ortscan.pipeline.rewriting import Outcome
from ortscan.running.specs import input_specs, overridable_names
from rewrites.base.report import Advice, Fate

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench

__all__ = ["MOST_SECONDS", "give_advice"]

MOST_SECONDS = 60.0
"""After so many nothing more is tried."""
_LARGEST = 512 << 20
"""Bytes of weights, of models that are tried out."""
_TIMED_TARGETS = ("cpu", "onnx")
_CLEARLY = 1.1
"""So many times as fast as the plainest advice another has to be."""
_FATES: dict[Fate, str] = {
    "removed": "no loop is left",
    "planned": "the loop runs compiled",
    "reduced": "the loop gets smaller",
    "rewritten": "the loop gets smaller",
    "kept": "the loop gets smaller",
}


def give_advice(
    model: ModelLike, options: Mapping[str, Any], outcome: Outcome, progress: Callable[[int, int], None] | None = None
) -> None:
    """Put what helps into the report of ``outcome``, which ``options`` made of ``model``. What fails on the way is of no help."""
    from ortscan.benchmark.trial import StillRunning

    report, end = outcome.report, time.monotonic() + MOST_SECONDS
    if not report.loops:
        return
    with ExitStack() as stack:
        proto = open_source(model, stack).proto
        if weight(proto) > _LARGEST:
            report.messages.append("no advice: the model is too large to try things out on")
            return
        inputs = input_specs(proto.graph)
        found = list(candidates(report, options, inputs, sorted(overridable_names(proto)))) if report.loops_left else []
    is_timed = report.target in _TIMED_TARGETS
    try:
        if is_timed:
            measure_costs(model, outcome)
    except StillRunning as error:
        report.messages.append(f"no advice: {error}")
        return
    of_use: list[tuple[Tried, Bench | None]] = []
    for number, candidate in enumerate(found):
        if progress is not None:
            progress(number, len(found))
        if time.monotonic() > end or any(_is_needless(candidate, other) for other, _ in of_use):
            continue
        one = tried(model, options, candidate, report)
        bench = gain_of(one, outcome.loaded) if one is not None and is_timed else None
        if one is not None and (bench is not None or not is_timed) and one.passes is not None:
            of_use.append((one, bench))
    for loop in report.loops_left:
        loop.advice = _chosen(loop.where, of_use)


def _is_needless(candidate: Candidate, other: Tried) -> bool:
    """Whether ``other``, which is of use, makes it needless to try ``candidate``: of one dimension the larger size will do."""
    return bool(candidate.at) and candidate.at.keys() == other.candidate.at.keys()


def _chosen(where: str, of_use: "list[tuple[Tried, Bench | None]]") -> list[Advice]:
    """Return the best advice for the loop at ``where`` that holds for any session, and what is clearly better but does not."""
    found: list[Advice] = []
    best = 1.0
    for is_portable in (True, False):
        fitting = [(one, bench) for one, bench in of_use if where in one.better and one.candidate.is_portable == is_portable]
        chosen = max(fitting, key=lambda pair: (_factor(pair[1]), not pair[0].candidate.when), default=None)
        for pair in fitting:
            if chosen is not None and not pair[0].candidate.when and _factor(pair[1]) * _CLEARLY > _factor(chosen[1]):
                chosen = pair
        if chosen is not None and (not found or _factor(chosen[1]) > best * _CLEARLY):
            best = _factor(chosen[1])
            found.append(_advice(*chosen, where))
    return found


def _factor(bench: "Bench | None") -> float:
    return 1.0 if bench is None else max(result.ratio().value for result in bench.results)


def _advice(one: Tried, bench: "Bench | None", where: str) -> Advice:
    from ortscan.benchmark.words import duration, gain

    candidate, fate = one.candidate, one.better[where]
    condition = f", if {candidate.when}" if candidate.when else ""
    flags, options = candidate.flags, dict(candidate.options)
    if one.passes == "quick":
        flags = f"{flags} --verify quick"
    if bench is None:
        return Advice(flags, options, fate, f"{flags}: {_FATES[fate]}{condition}", candidate.when)
    result = max(bench.results, key=lambda result: result.ratio().value)
    before, after = (timing.median for timing in result.timings)
    said = f"a run takes {duration(after)} instead of {duration(before)}, {gain(result.ratio())} ({result.label})"
    text = f"{flags}: {_FATES[fate]}; {said}{condition}"
    return Advice(flags, options, fate, text, candidate.when, (before, after), dict(result.sizes))
