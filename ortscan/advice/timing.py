"""What a candidate gains, timed beside what is made of the model without it."""

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ortscan.advice.trying import Tried
from ortscan.errors import OrtscanWarning
from ortscan.modelio import AnyModel, LoadedModel, to_proto, with_inputs_built_in
from rewrites.base.errors import OrtscanError

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench

__all__ = ["gain_of", "is_gain", "timed"]

_SECONDS, _ROUNDS = 0.8, 7


def timed(models: Mapping[str, AnyModel], sizes: Mapping[str, int], profile: bool = False) -> "Bench | None":
    """Time ``models``; return None if they cannot be timed. Raises StillRunning if their runs do not end."""
    from ortscan.benchmark.measure import measure
    from ortscan.benchmark.trial import StillRunning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OrtscanWarning)
        try:
            return measure(models, sizes=dict(sizes), rounds=_ROUNDS, seconds=_SECONDS, profile=profile)
        except StillRunning:
            raise
        except OrtscanError:
            return None


def gain_of(one: Tried, without: LoadedModel) -> "Bench | None":
    """Time the result beside that ``without`` the candidate; None where it gains nothing, or cannot be timed."""
    from ortscan.benchmark.trial import StillRunning

    before: AnyModel = without
    given = one.candidate.options
    if given.get("fix_inputs") or given.get("freeze"):
        before = with_inputs_built_in(to_proto(without), given.get("fix_inputs"), given.get("freeze", False))
    try:
        bench = timed({"without": before, "with": one.outcome.loaded}, one.candidate.at)
    except StillRunning:
        return None
    return bench if bench is not None and is_gain(bench) else None


def is_gain(bench: "Bench") -> bool:
    """Whether the last model is measurably faster than the first at some of the sizes, and slower at none."""
    ratios = [result.ratio() for result in bench.results]
    return any(ratio.is_faster for ratio in ratios) and not any(ratio.is_slower for ratio in ratios)
