"""Give the answer that a report starts with."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ortscan.modelio import AnyModel
from ortscan.pipeline.rewriting import Rewritten
from ortscan.report.answer import Answer
from ortscan.running.budget import Level
from rewrites.base.report import RewriteReport

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench
    from ortscan.verification import Verification

__all__ = ["answer_of", "timed_answer"]


def answer_of(report: RewriteReport, bench: "Bench | None" = None, verification: "Verification | None" = None) -> Answer:
    """Return the answer that a report starts with.

    It says ``not compared`` if there is no ``verification``.

    Args:
        report: the report on the result.
        bench: the measurements of ``models_to_time``; None if the result was not timed.
        verification: the comparison of the result with the original; None if there was none.
    """
    facts: dict[str, Any] = {"outcome": "not compared"}
    if verification is not None:
        facts = {"outcome": verification.outcome, "cases": len(verification.compared_cases)}
    from ortscan.benchmark.brief import TIMED_TARGETS

    if bench is not None:
        facts["speedup"] = bench.results[0].speedup()
        facts["without_library"] = bench.results[0].speedup(1) if len(bench.models) > 2 else None
    if report.changed and report.target not in TIMED_TARGETS:
        facts["not_timed"] = f"not timed: the target is {report.target}, and only the CPU is timed"
    return Answer.of(report, **facts)


def timed_answer(outcome: Rewritten, before: AnyModel, shapes: Mapping[str, Sequence[int | None]] | None, level: Level) -> Answer:
    """Return the answer for ``outcome``, the result of rewriting ``before``.

    The result is timed first if the comparison found it equal. ``shapes`` and ``level`` are those of ``time_result``.
    """
    from ortscan.benchmark.brief import time_result
    from ortscan.benchmark.measure import StillRunning

    bench, verification = None, outcome.verification
    if outcome.report.changed and verification is not None and verification.ok:
        with suppress(StillRunning):
            bench = time_result(outcome.report, before, outcome.loaded, shapes, level=level)
    return answer_of(outcome.report, bench, verification)
