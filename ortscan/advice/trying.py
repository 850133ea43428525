"""Tries a candidate: rewrites the model so, and looks whose fate is better for it."""

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ortscan.advice.candidates import Candidate
from ortscan.errors import OrtscanWarning
from ortscan.modelio import ModelLike
from ortscan.pipeline.compare_with_original import is_refuted
from ortscan.pipeline.rewriting import Outcome, Rewriting
from ortscan.pipeline.self_check import self_checked
from ortscan.running.budget import Level, quick_seconds
from rewrites.base.errors import OrtscanError
from rewrites.base.report import Fate, LoopReport, Report

__all__ = ["Tried", "tried"]

_SECONDS = 10.0
"""That a full comparison may take."""
_RANKS: dict[Fate, int] = {"kept": 0, "rewritten": 0, "reduced": 1, "planned": 2, "removed": 2}


@dataclass(frozen=True)
class Tried:
    """A candidate, what came of it, and the loops whose fate is better with it, by where they are; ``seconds``: that took."""

    candidate: Candidate
    rewriting: Rewriting
    outcome: Outcome
    better: Mapping[str, Fate]
    seconds: float

    @cached_property
    def passes(self) -> Level | None:
        """The most thorough comparison with the original that the result passes, None where it passes none."""
        return "full" if self._is_equal("full") else "quick" if self._is_equal("quick") else None

    def _is_equal(self, level: Level) -> bool:
        from ortscan.verification import verify

        limit = quick_seconds(self.seconds) if level == "quick" else _SECONDS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OrtscanWarning)
            sizes = self.rewriting.sizes
            return not is_refuted(verify(self.rewriting.model, self.outcome.loaded, shapes=sizes, level=level, time_limit=limit))


def tried(model: ModelLike, options: Mapping[str, Any], candidate: Candidate, before: Report) -> Tried | None:
    """Rewrite ``model`` with ``candidate`` too; None where no loop that ``before`` leaves has a better fate then, or it fails."""
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
    better = {loop.where: after[loop.where].fate for loop in left if _is_better(loop, after[loop.where])}
    return Tried(candidate, rewriting, outcome, better, time.monotonic() - started) if better else None


def _is_better(before: LoopReport, after: LoopReport) -> bool:
    ranks = _RANKS[before.fate], _RANKS[after.fate]
    return ranks[1] > ranks[0] or (ranks[1] == ranks[0] and after.nodes_after < before.nodes_after)
