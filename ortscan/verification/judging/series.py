"""Running all cases for one set of inputs, with other cases where the original refuses the first choice."""

from collections.abc import Sequence
from dataclasses import replace

from ortscan.verification.cases.planned_case import PlannedCase
from ortscan.verification.cases.planned_cases import Inputs
from ortscan.verification.judging.judge import Judge, Judged
from ortscan.verification.judging.least_sizes import least_sizes
from ortscan.verification.sizes.constraints import Sizes

__all__ = ["run_series", "untried_integers", "untried_named", "untried_sizes"]

_PATIENCE = 3
_LEAST = 3
_FEW = 4
"""Where the original takes fewer cases than these of all sizes, larger sizes are searched for."""
_SEARCH_SECONDS = 2.0
"""What there is for the search at least, where nothing ran at all."""
_FIRST = 4
"""So many cases of sizes that may be unlike are tried before nothing more is for want of one that the original takes."""


def run_series(judge: Judge, inputs: Inputs, learned: Sizes | None, loose: Sizes | None = None) -> list[Judged]:
    """Run the planned cases; if they leave a size at 1 or less, others; where something ran, sizes of zero and unusual values.

    Where next to nothing ran, sizes are searched for that the original takes, and the planned cases start from there; so are they
    where it refuses the values that the models name: another branch of an If may want larger ones. Where it takes no others, those
    are fed.

    Where ``loose`` has it that sizes may be unlike, what branches of Ifs alone forbid, the original is asked whether it takes them.
    After three runs of the original that had to be stopped, or where the budget is spent after three cases, nothing more is tried.
    """
    judged: list[Judged] = []
    started, known = _start(judge, inputs, learned, judged)
    if not _any_ran(judged) and inputs.names_integers:
        started, known = _start(judge, replace(inputs, as_named=True), learned, judged)
    inputs, learned = (started, known) if _any_ran(judged) else (inputs, learned)
    if untried_sizes(judged, inputs):
        _run(judge, inputs, inputs.uniform_cases(large=True), judged)
    if _any_ran(judged) and learned is not None and loose is not None:
        apart, before = inputs.apart_cases(learned, loose), len(judged)
        _run(judge, inputs, apart[:_FIRST], judged)
        if _any_ran(judged[before:]):
            _run(judge, inputs, apart[_FIRST:], judged)
    if _any_ran(judged) and not inputs.avoid_nothing:
        _run(judge, inputs, inputs.nothing_cases(learned), judged)
    if _any_ran(judged):
        _run(judge, inputs, inputs.unusual_cases(learned), judged)
    if untried_named(judged) and (found := least_sizes(judge, inputs, learned, "named")) is not None:
        others = replace(inputs, least=found.least).unusual_cases(found.learned)
        _run(judge, inputs, [planned for planned in others if planned.point.kind == "named"], judged)
    return judged


def _start(judge: Judge, inputs: Inputs, learned: Sizes | None, judged: list[Judged]) -> tuple[Inputs, Sizes | None]:
    """Run the planned cases, small ones, and those of sizes that are searched for; return what is known of them then."""
    _run(judge, inputs, inputs.planned_cases(learned), judged)
    if learned is not None and not _any_ran(judged):
        _run(judge, inputs, inputs.planned_cases(None), judged)
    if untried_sizes(judged, inputs):
        _run(judge, inputs, inputs.uniform_cases(large=False), judged)
    if sum(one.case.status != "skipped" for one in judged) >= _FEW:
        return inputs, learned
    if not any(one.case.status != "skipped" or one.timed_out for one in judged):
        judge.budget.grant(_SEARCH_SECONDS)
    found = least_sizes(judge, inputs, learned)
    if found is None:
        return inputs, learned
    inputs = replace(inputs, least=found.least)
    _run(judge, inputs, inputs.planned_cases(found.learned), judged, _FEW)
    return inputs, found.learned


def untried_sizes(judged: Sequence[Judged], inputs: Inputs) -> list[str]:
    """The free dimensions that no case which ran on the original has larger than 1; all of them where none ran."""
    ran = [one.case.dims for one in judged if one.case.status != "skipped"]
    return [name for name in inputs.free_sizes if not any(dims.get(name, 0) > 1 for dims in ran)]


def untried_integers(judged: Sequence[Judged], inputs: Inputs) -> list[str]:
    """The integer inputs that every case which ran on the original has at their usual values, though others are worth a try."""
    points = [one.planned.point for one in judged if one.case.status != "skipped" and one.planned.point.kind == "other integers"]
    tried = {name for point in points for name in ([point.only] if point.only else inputs.others)}
    return [name for name in inputs.others if name not in tried]


def untried_named(judged: Sequence[Judged]) -> bool:
    """Whether the original refused every case with the values that the models name."""
    statuses = {one.case.status for one in judged if one.planned.point.kind == "named"}
    return statuses == {"skipped"}


def _run(judge: Judge, inputs: Inputs, planned_cases: Sequence[PlannedCase], judged: list[Judged], least: int = 0) -> None:
    for turn, planned in enumerate(planned_cases):
        if (len(judged) >= _LEAST and turn >= least and judge.budget.is_spent()) or sum(
            one.timed_out for one in judged
        ) >= _PATIENCE:
            return
        if all(one.planned != planned for one in judged):
            judged.append(judge.judge(planned, inputs))


def _any_ran(judged: Sequence[Judged]) -> bool:
    return any(one.case.status != "skipped" for one in judged)
