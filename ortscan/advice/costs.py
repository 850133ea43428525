"""What the loops of a model cost, before and after: of a whole run, and of each loop as far as onnxruntime's profile tells."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ortscan.advice.timing import timed
from ortscan.modelio import AnyModel
from ortscan.pipeline.rewriting import Outcome
from rewrites.graph.marks import REPORT
from rewrites.graph.walk import all_nodes

if TYPE_CHECKING:
    from ortscan.benchmark.result import BenchedModel

__all__ = ["measure_costs"]


def measure_costs(model: AnyModel, outcome: Outcome) -> None:
    """Time ``model`` and its ``outcome``, and note in the report what a run, and each loop, cost before and cost now.

    Raises StillRunning if a run does not end: then nothing else can be timed either.
    """
    from ortscan.benchmark.words import duration, gain

    bench = timed({"the original": model, "the result": outcome.loaded}, {}, profile=True)
    if bench is None:
        return
    result = bench.results[0]
    before, after = (duration(timing.median) for timing in result.timings)
    if outcome.is_touched:
        said = f"{gain(result.ratio())} ({result.label})"
        outcome.report.messages.append(f"a run takes {after} instead of {before}: {said}")
    old, new = (_by_name(one) for one in bench.models)
    left: dict[int, list[str]] = {}
    for node in all_nodes(outcome.loaded.model.graph):
        entry = REPORT.of(node)
        if entry is not None:
            left.setdefault(id(entry), []).append(node.name or "")
    for loop in outcome.report.loops:
        name = _name_in(loop.where)
        took, takes = old.get(name), _sum(new, left.get(id(loop), []))
        if not took or took > result.timings[0].median:
            continue
        now = "" if loop.fate == "kept" else "; none of it is left" if loop.fate == "removed" else ""
        now = f"; {duration(takes)} of {after} now" if takes and takes < result.timings[-1].median else now
        loop.cost = f"{duration(took)} of the {before} of a run{now}"


def _by_name(model: "BenchedModel") -> dict[str, float]:
    """Return the seconds of each loop that alone has its name."""
    names = [loop.name for loop in model.loops]
    return {loop.name: loop.seconds for loop in model.loops if names.count(loop.name) == 1}


def _sum(seconds: dict[str, float], names: Iterable[str]) -> float | None:
    known = [seconds.get(name) for name in names]
    return sum(one for one in known if one is not None) if known and None not in known else None


def _name_in(where: str) -> str:
    """Return the name of the node at ``where``, which is in the main graph."""
    _, _, named = where.partition(" '")
    return named.removesuffix("'") if where.count(" '") == 1 else ""
