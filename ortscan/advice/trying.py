"""Try a candidate.

The model is rewritten with the candidate. If this improves loops, the results are compared and timed.
"""

import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ortscan.advice.candidates import AdviceCandidate
from ortscan.errors import OrtscanWarning
from ortscan.modelio import AnyModel, LoadedModel, ModelLike, to_proto, with_constant_inputs
from ortscan.pipeline.compare_with_original import is_refuted
from ortscan.pipeline.rewriting import Rewriting, Rewritten
from ortscan.pipeline.self_check import self_checked
from ortscan.running.budget import Level, quick_seconds
from rewrites.base.errors import OrtscanError
from rewrites.base.report import Fate, LoopReport, RewriteReport

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench

__all__ = ["TriedCandidate", "gain_of", "try_candidate"]

_COMPARED_SECONDS = 10.0
"""The time limit of a full comparison."""
_RANKS: dict[Fate, int] = {"kept": 0, "rewritten": 0, "reduced": 1, "compiled": 2, "removed": 2}


@dataclass(frozen=True)
class TriedCandidate:
    """A candidate that improves some loops.

    Attributes:
        candidate: the options that were tried.
        rewriting: the model, and the options with which the model was rewritten.
        outcome: the optimised model and its report.
        improved_fates: what became of each improved loop (such as ``removed``), by the location of the loop.
        seconds: the duration of the rewriting.
    """

    candidate: AdviceCandidate
    rewriting: Rewriting
    outcome: Rewritten
    improved_fates: Mapping[str, Fate]
    seconds: float

    @cached_property
    def verified_level(self) -> Level | None:
        """The most thorough level at which no difference is found: ``full``, else ``quick``, else None."""
        return "full" if self._is_equal("full") else "quick" if self._is_equal("quick") else None

    def _is_equal(self, level: Level) -> bool:
        from ortscan.verification import verify

        limit = quick_seconds(self.seconds) if level == "quick" else _COMPARED_SECONDS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OrtscanWarning)
            sizes = self.rewriting.sizes
            return not is_refuted(verify(self.rewriting.model, self.outcome.loaded, shapes=sizes, level=level, time_limit=limit))


def try_candidate(
    model: ModelLike, options: Mapping[str, Any], candidate: AdviceCandidate, before: RewriteReport
) -> TriedCandidate | None:
    """Rewrite ``model`` with ``candidate``. Return None if the rewriting fails or improves no loop.

    Args:
        model: the original model.
        options: the caller's options. The options of ``candidate`` are added to them.
        candidate: the options to try.
        before: the report without the candidate.
    """
    started = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OrtscanWarning)
        try:
            rewriting = Rewriting(model, **{**options, **candidate.options, "progress": None})
            outcome = self_checked(rewriting)
        except OrtscanError:
            return None
    after = {loop.where: loop for loop in outcome.report.loops}
    left = [loop for loop in before.loops_left if loop.where in after]
    improved_fates = {loop.where: after[loop.where].fate for loop in left if _is_better(loop, after[loop.where])}
    return TriedCandidate(candidate, rewriting, outcome, improved_fates, time.monotonic() - started) if improved_fates else None


def _is_better(before: LoopReport, after: LoopReport) -> bool:
    ranks = _RANKS[before.fate], _RANKS[after.fate]
    return ranks[1] > ranks[0] or (ranks[1] == ranks[0] and after.nodes_after < before.nodes_after)


def gain_of(attempt: TriedCandidate, without: LoadedModel) -> "Bench | None":
    """Time the model of ``attempt`` against ``without``, the model optimised without the candidate.

    Return the measurements if the model of ``attempt`` is measurably faster, else None.
    """
    from ortscan.benchmark.brief import time_briefly
    from ortscan.benchmark.measure import StillRunning

    before: AnyModel = without
    options = attempt.candidate.options
    if options.get("fix_inputs") or options.get("freeze"):
        before = with_constant_inputs(to_proto(without), options.get("fix_inputs"), options.get("freeze", False))
    with suppress(StillRunning):
        bench = time_briefly({"without": before, "with": attempt.outcome.loaded}, attempt.rewriting.sizes)
        return bench if bench is not None and bench.is_faster else None
    return None
