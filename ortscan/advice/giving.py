"""Add to a report the cost of each loop, and advice on the remaining loops."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ortscan.advice.candidates import AdviceCandidate, candidates
from ortscan.advice.trying import TriedCandidate, gain_of, try_candidate
from ortscan.modelio import ModelLike
from ortscan.modelio.source import initializer_bytes, open_source
from ortscan.pipeline.rewriting import Rewriting, Rewritten
from ortscan.report.ratio import duration
from ortscan.running.specs import input_specs, overridable_names
from rewrites.base.report import Advice, Fate
from rewrites.graph.marks import REPORT
from rewrites.graph.walk import all_nodes

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench, BenchedModel

__all__ = ["MOST_SECONDS", "give_advice"]

MOST_SECONDS = 60.0
"""After this time in seconds no further candidate is tried."""
_LARGEST = 512 << 20
"""The most bytes of weights. No candidates are tried on larger models."""
_CLEARLY = 1.1
"""Other advice is preferred to the simplest advice only if its result is faster by this factor."""
_FATES: dict[Fate, str] = {
    "removed": "no loop is left",
    "compiled": "the loop runs compiled",
    "reduced": "the loop gets smaller",
    "rewritten": "the loop gets smaller",
    "kept": "the loop gets smaller",
}


def give_advice(
    model: ModelLike, options: Mapping[str, Any], outcome: Rewritten, progress: Callable[[int, int], None] | None = None
) -> "Bench | None":
    """Add costs and advice to the report of ``outcome``. A candidate that fails is skipped.

    Return the times of the original and the optimised model, or None if they cannot be timed.

    Args:
        model: the original model.
        options: the caller's options.
        outcome: the optimised model and its report.
        progress: a function that is called with the number of tried candidates and the number of all candidates.
    """
    from ortscan.benchmark.brief import TIMED_TARGETS, time_result
    from ortscan.benchmark.measure import StillRunning

    report, end = outcome.report, time.monotonic() + MOST_SECONDS
    if not report.loops:
        return None
    with ExitStack() as stack:
        proto = open_source(model, stack).proto
        if initializer_bytes(proto) > _LARGEST:
            report.messages.append("no advice: the model is too large to try options on")
            return None
        inputs = input_specs(proto.graph)
        proposals = list(candidates(report, options, inputs, sorted(overridable_names(proto)))) if report.loops_left else []
    rewriting = Rewriting(model, **options)
    try:
        times = time_result(report, rewriting.model, outcome.loaded, rewriting.sizes, profile=True)
    except StillRunning as error:
        report.messages.append(f"no advice: {error}")
        return None
    if times is not None:
        _add_costs(times, outcome)
    is_timed = report.target in TIMED_TARGETS
    helpful: list[tuple[TriedCandidate, Bench | None]] = []
    for number, candidate in enumerate(proposals):
        if progress is not None:
            progress(number, len(proposals))
        if time.monotonic() > end or any(_is_covered_by(candidate, other) for other, _ in helpful):
            continue
        attempt = try_candidate(model, options, candidate, report)
        if attempt is None:
            continue
        bench = gain_of(attempt, outcome.loaded) if is_timed else None
        if (bench is not None or not is_timed) and attempt.verified_level is not None:
            helpful.append((attempt, bench))
    for loop in report.loops_left:
        loop.advice = _best_advice(loop.where, helpful, times)
    return times


def _add_costs(times: "Bench", outcome: Rewritten) -> None:
    """Add the time of each loop, in the original and in the optimised model, to the report of ``outcome``."""
    speedup = times.results[0].speedup()
    old, new = _loop_shares(times.models[0]), _loop_shares(times.models[-1])
    left: dict[int, list[str]] = {}
    for node in all_nodes(outcome.loaded.model.graph):
        entry = REPORT.of(node)
        if entry is not None:
            left.setdefault(id(entry), []).append(node.name or "")
    for loop in outcome.report.loops:
        name = _name_in(loop.where)
        took, takes = old.get(name), _sum(new, left.get(id(loop), []))
        if not took:
            continue
        now = "; none of it is left" if loop.fate == "removed" else ""
        if takes and loop.fate != "kept":
            now = f"; {duration(takes * speedup.after)} of {duration(speedup.after)} now"
        loop.cost = f"{duration(took * speedup.before)} of the {duration(speedup.before)} of a run{now}"


def _loop_shares(model: "BenchedModel") -> dict[str, float]:
    """Return a dict from the name of each loop to its share of the time of a run.

    If several loops have the same name, all of them are left out.
    """
    names = [loop.name for loop in model.loops]
    return {loop.name: loop.share for loop in model.loops if names.count(loop.name) == 1}


def _sum(shares: dict[str, float], names: Iterable[str]) -> float | None:
    known = [shares.get(name) for name in names]
    return sum(share for share in known if share is not None) if known and None not in known else None


def _name_in(where: str) -> str:
    """Return the name of the node at ``where``, such as ``a`` for ``Scan 'a'``.

    Return "" for a node outside the main graph.
    """
    _, _, named = where.partition(" '")
    return named.removesuffix("'") if where.count(" '") == 1 else ""


def _is_covered_by(candidate: AdviceCandidate, other: TriedCandidate) -> bool:
    """Return True if ``candidate`` need not be tried, because the candidate ``other`` already helps.

    This is the case if both candidates have ``sizes`` of the same dimensions. Candidates with larger sizes are tried first, so the
    sizes of ``other`` are larger.
    """
    return bool(candidate.sizes) and candidate.sizes.keys() == other.candidate.sizes.keys()


def _best_advice(where: str, helpful: "list[tuple[TriedCandidate, Bench | None]]", times: "Bench | None") -> list[Advice]:
    """Return at most two pieces of advice for the loop at ``where``.

    The first piece is the best advice that helps in any session of onnxruntime. The second piece is the best advice that needs a
    session with ortscan's library. It is returned if there is no first piece, or if it is clearly faster than the first piece.

    Args:
        where: the location of the loop.
        helpful: the candidates that improve some loops, each with its measurements, or with None if it was not timed.
        times: the times of the original and the optimised model. The advice starts from the time of the optimised model.
    """
    chosen_advice: list[Advice] = []
    best = 1.0
    for is_portable in (True, False):
        helping = [pair for pair in helpful if where in pair[0].improved_fates]
        fitting = [pair for pair in helping if pair[0].candidate.is_portable == is_portable]
        chosen = max(fitting, key=lambda pair: (_factor(pair[1]), not pair[0].candidate.when), default=None)
        for pair in fitting:
            if chosen is not None and not pair[0].candidate.when and _factor(pair[1]) * _CLEARLY > _factor(chosen[1]):
                chosen = pair
        if chosen is not None and (not chosen_advice or _factor(chosen[1]) > best * _CLEARLY):
            best = _factor(chosen[1])
            chosen_advice.append(_advice(*chosen, where, times))
    return chosen_advice


def _factor(bench: "Bench | None") -> float:
    return 1.0 if bench is None else bench.results[0].ratio().value


def _advice(attempt: TriedCandidate, bench: "Bench | None", where: str, times: "Bench | None") -> Advice:
    candidate, fate = attempt.candidate, attempt.improved_fates[where]
    condition = f", if {candidate.when}" if candidate.when else ""
    flags, options = candidate.flags, dict(candidate.options)
    if attempt.verified_level == "quick":
        flags = f"{flags} --verify quick"
    if bench is None:
        return Advice(flags, options, fate, f"{flags}: {_FATES[fate]}{condition}", candidate.when)
    speedup = bench.results[0].speedup()
    speedup = speedup if times is None else speedup.after_same_start(times.results[0].speedup())
    text = f"{flags}: {_FATES[fate]}; {speedup}{condition}"
    return Advice(flags, options, fate, text, candidate.when, (speedup.before, speedup.after), dict(speedup.sizes))
