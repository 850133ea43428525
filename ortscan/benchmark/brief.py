"""Time a result briefly, to say in one line how much faster it is."""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from ortscan.benchmark.measure import StillRunning, measure
from ortscan.benchmark.result import Bench
from ortscan.errors import OrtscanWarning
from ortscan.modelio import AnyModel, LoadedModel
from ortscan.modelio.source import ModelSource, initializer_bytes, open_source
from ortscan.native.library import library_path
from ortscan.running.budget import Level
from ortscan.verification.inputs.given_inputs import Given
from ortscan.verification.oracle.runnable import without_plans
from rewrites.base.errors import OrtscanError
from rewrites.base.report import RewriteReport

__all__ = ["TIMED_TARGETS", "models_to_time", "time_briefly", "time_result"]

_SECONDS, _MORE_SECONDS, _ROUNDS = 0.4, 1.0, 15
"""Many short rounds, because on a busy machine single rounds are often disturbed. If they disagree, the models are timed again, for
longer. Models whose runs are so long that there are fewer rounds are timed only once.
"""
_LONGEST_RUN: Mapping[Level, float] = {"full": 5.0, "quick": 0.2}
"""The time limit of a run in seconds. A model with longer runs is not timed."""
_LARGEST_QUICK = 64 << 20
"""The most bytes of weights of a model that is timed after a quick comparison, because timing loads it several times."""
TIMED_TARGETS = ("cpu", "onnx")
"""The targets that run on the CPU."""
_WITHOUT_LIBRARY = "the result without ortscan's library"


def time_briefly(
    models: Mapping[str, AnyModel | ModelSource],
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    inputs: Given | None = None,
    *,
    profile: bool = False,
    level: Level = "full",
) -> Bench | None:
    """Time ``models`` at the first of the sizes that ``bench`` uses.

    Return None if the models cannot be timed.

    Args:
        models: the models by name.
        shapes: the shapes of inputs.
        inputs: the caller's inputs; None for generated inputs.
        profile: True to measure the time of each loop too.
        level: how thoroughly the models are compared. It sets the time limit of a run.

    Raises:
        StillRunning: a run did not end within its time limit.
    """
    effort: dict[str, Any] = {"rounds": _ROUNDS, "run_seconds": _LONGEST_RUN[level], "brief": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OrtscanWarning)
        try:
            bench = measure(models, shapes=shapes, inputs=inputs, profile=profile, seconds=_SECONDS, **effort)
            if bench.results[0].ratio().is_settled or bench.rounds < _ROUNDS:
                return bench
            return measure(models, shapes=shapes, inputs=inputs, profile=profile, seconds=_MORE_SECONDS, **effort)
        except StillRunning:
            raise
        except OrtscanError:
            return None


def time_result(
    report: RewriteReport,
    before: AnyModel,
    after: LoadedModel,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    inputs: Given | None = None,
    *,
    profile: bool = False,
    level: Level = "full",
) -> Bench | None:
    """Time a result against the original.

    Return None if they cannot be timed, or if timing would take long.

    Args:
        report: the report on the result.
        before: the original.
        after: the result.
        shapes, inputs, profile, level: as for ``time_briefly``.

    Raises:
        StillRunning: a run did not end within its time limit.
    """
    if report.target not in TIMED_TARGETS:
        return None
    with ExitStack() as stack:
        models = models_to_time(before, after, stack)
        weights = sum(initializer_bytes(source.proto) for source in models.values())
        return (
            None
            if level == "quick" and weights > _LARGEST_QUICK
            else time_briefly(models, shapes, inputs, profile=profile, level=level)
        )


def models_to_time(before: AnyModel, after: LoadedModel, stack: ExitStack) -> dict[str, ModelSource]:
    """Return the original and the result by name, the result last.

    If the result has compiled loops, the result as a runtime without ortscan's library runs it is between them. Temporary files
    are removed when ``stack`` closes.
    """
    original, result = open_source(before, stack), open_source(after, stack)
    plain = without_plans(result, stack) if library_path() is not None else result
    between = {} if plain is result else {_WITHOUT_LIBRARY: plain}
    return {"the original": original, **between, "the result": result}
