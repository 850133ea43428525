"""Drawing the conclusion from all cases."""

import math
import statistics
from collections.abc import Sequence

import onnx

from ortscan.verification.closeness.compare_values import Gap
from ortscan.verification.judging.blame import known_defect
from ortscan.verification.judging.judge import Judge, Judged
from ortscan.verification.judging.never_runs import why_it_never_ran
from ortscan.verification.judging.recorded_outputs import Records
from ortscan.verification.result import Case, FirstDifference, OutputError, OutputResult, Verification

__all__ = ["conclude", "refuse"]

_FEWEST_RUNS = 6
"""Of fewer nothing is said of speed."""
_WIDEST_SPREAD = 4.0
"""Of runs whose ratios differ by more, in the middle half of them, neither: a machine with other work to do makes such."""

_DISOWNED = (
    "onnxruntime computes output '{}' of the original otherwise once nodes that change nothing stand in it, "
    "so that nothing can be told of it{}"
)


def refuse(
    outputs: Sequence[str], problems: Sequence[str], notes: Sequence[str] = (), *, inconclusive: bool = False
) -> Verification:
    """The outcome where nothing was run."""
    results = [OutputResult(name, "not compared", 0.0, 0.0, 0.0, 0) for name in outputs]
    return Verification(False, (), results, None, tuple(problems), tuple(notes), inconclusive)


def conclude(
    judge: Judge,
    judged: Sequence[Judged],
    notes: Sequence[str],
    not_tried: Sequence[str],
    records: Records,
    original: onnx.ModelProto,
    inside: str = "",
) -> Verification:
    """Sum up the cases, and what comparing with ``records`` found: ok only where something was compared and nothing different.

    ``inside``: the first value inside that differs, in words.
    """
    cases = [one.case for one in judged]
    outputs = [_summed_up(name, judge, cases) for name in judge.before.outputs]
    problems = _failures(cases) + [_DISOWNED.format(name, known_defect(original)) for name in sorted(judge.disowned)]
    if not any(output.compared for output in outputs):
        problems += [] if problems else [_why_nothing(cases, outputs, judge, original)]
    else:
        problems += _vacuous(judged)
    problems += [*records.broken, *records.unlike]
    different = bool(records.broken) or any(output.status == "different" for output in outputs)
    remarks = [*notes, *records.notes, *judge.notes, *_remarks(judged, outputs, judge)]
    failed = any(case.status == "fails only after" for case in cases)
    return Verification(
        ok=not problems and not different,
        cases=cases,
        outputs=outputs,
        first_difference=_first_difference(judged, inside),
        problems=tuple(problems),
        notes=tuple(remarks),
        inconclusive=bool(problems) and not different and not failed,
        witness=next((one.witness[0] for one in judged if one.witness is not None), None),
        not_tried=tuple(not_tried),
        times_as_fast=_times_as_fast(judged),
    )


def _times_as_fast(judged: Sequence[Judged]) -> float | None:
    """Return the median of how many times as fast the second model was; None of a few runs, of which the first does not count,
    and where they disagree.
    """
    timed = [one.seconds for one in judged[1:] if one.seconds is not None]
    ratios = [before / after for before, after in timed if before and after]
    if len(ratios) < _FEWEST_RUNS:
        return None
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return middle if high <= _WIDEST_SPREAD * low else None


def _summed_up(name: str, judge: Judge, cases: Sequence[Case]) -> OutputResult:
    errors = [case.outputs[name] for case in cases if name in case.outputs]
    if name in judge.unstable:
        reason = "the original gives another value in each run"
        return OutputResult(name, "not comparable", 0.0, 0.0, 0.0, 0, reason)
    if not errors:
        return OutputResult(name, "not compared", 0.0, 0.0, 0.0, 0)
    worst = max(errors, key=_badness)
    numbers = (worst.absolute, worst.relative, worst.allowed)
    return OutputResult(name, "different" if worst.reason else "equal", *numbers, len(errors), worst.reason)


def _badness(error: OutputError) -> tuple[bool, float]:
    return error.reason is not None, math.inf if math.isnan(error.absolute) else error.absolute


def _failures(cases: Sequence[Case]) -> list[str]:
    failed = [case for case in cases if case.status == "fails only after"]
    if not failed:
        return []
    more = f", and in {len(failed) - 1} more" if len(failed) > 1 else ""
    return [f"the result fails where the original runs ({failed[0].label}{more}): {failed[0].reason}"]


def _why_nothing(cases: Sequence[Case], outputs: Sequence[OutputResult], judge: Judge, original: onnx.ModelProto) -> str:
    if not outputs:
        return "the model has no outputs"
    if len(judge.unstable) == len(outputs):
        return "every output of the original differs from run to run"
    if not cases:
        return f"there was no case to run{''.join(f' within {limit}' for limit in judge.budget.hits)}"
    return why_it_never_ran(original, cases)


def _vacuous(judged: Sequence[Judged]) -> list[str]:
    gaps = [gap for one in judged for gap in one.gaps.values()]
    if any(gap.reason for gap in gaps) or any(gap.numbers for gap in gaps):
        return []
    return [f"every output {_lack(gaps)} in every case, so nothing was learned: pass inputs the model can work with"]


def _remarks(judged: Sequence[Judged], outputs: Sequence[OutputResult], judge: Judge) -> list[str]:
    found = [f"output '{name}' was not compared: it differs from run to run of the original" for name in sorted(judge.unstable)]
    for output in outputs:
        gaps = [one.gaps[output.name] for one in judged if output.name in one.gaps]
        if output.status == "equal" and not any(gap.numbers for gap in gaps):
            found.append(f"output '{output.name}' {_lack(gaps)} in every case")
    return found


def _lack(gaps: Sequence[Gap]) -> str:
    if any(gap.left_out for gap in gaps):
        return "was NaN or hung on the last digits of what is computed"
    return "was NaN" if any(gap.elements for gap in gaps) else "was empty"


def _first_difference(judged: Sequence[Judged], inside: str) -> FirstDifference | None:
    for one in judged:
        for name, gap in one.gaps.items():
            if gap.reason is not None:
                return FirstDifference(name, one.case, gap.index, gap.before, gap.after, gap.reason, inside)
    return None
