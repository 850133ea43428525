"""Run all planned cases, and other cases if the original rejects the planned ones.

Exporters often use the same name, such as ``N`` or ``dynamic``, for dimensions of different sizes. onnxruntime accepts this,
because it does not compare the sizes of dimensions with the same name. So if the original accepts no common size for such
dimensions, each of them gets its own name:

    x [T, N],  z [N],  x @ W [5, 4] + z @ V [7, 4]    ->    x [T, 'N of x[1]'],  z ['N of z[0]']
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from ortscan.running.constraints import SizeFacts
from ortscan.running.specs import SessionSpec
from ortscan.verification.inputs.cases import Inputs
from ortscan.verification.inputs.interface import quoted
from ortscan.verification.inputs.point import PlannedCase
from ortscan.verification.inputs.prepare import InputPlan
from ortscan.verification.judge.judge import Judge, Judged
from ortscan.verification.judge.least_sizes import least_sizes

__all__ = ["run_all"]

_PATIENCE = 3
_LEAST = 3
_FEW = 4
"""If the original runs in fewer cases than this, the search for larger sizes starts."""
_SEARCH_SECONDS = 2.0
"""The least time in seconds for the search for sizes if the original ran in no case."""
_FIRST = 4
"""The number of cases with unequal sizes to try first. If the original runs in one of them, the other such cases follow."""


def run_all(
    judge: Judge,
    plans: Sequence[InputPlan],
    prepared: Callable[[InputPlan, Sequence[SessionSpec]], InputPlan],
    notes: list[str],
    not_tried: list[str],
) -> list[Judged]:
    """Run the cases of all sets of inputs.

    Args:
        judge: runs the cases.
        plans: a plan for each set of inputs.
        prepared: a function that returns a new plan for a set of inputs. Its arguments are the old plan for this set, and
            declarations of the inputs in which some dimensions have other names.
        notes: a list to which notes for the report are added.
        not_tried: a list to which phrases on what the cases do not cover are added.
    """
    results = []
    for position, first in enumerate(plans):
        plan, series = first, _run_series(judge, first)
        untried = sorted(_shared_names(plan.inputs.missing).intersection(_untried_sizes(series, plan.inputs)))
        if untried:
            other = prepared(plan, _with_own_names(plan.inputs.missing, untried))
            other_series = _run_series(judge, other)
            if _any_ran(other_series):
                plan, series = other, other_series
                notes.append(
                    f"inputs share names of dimensions, but the original accepts no common size for them: {quoted(untried)}"
                )
        if _any_ran(series):
            notes += [f"the original did not run with '{name}' above 1" for name in _untried_sizes(series, plan.inputs)]
            if plan.inputs.level == "full" and (usual := _untried_integers(series, plan.inputs)):
                not_tried.append(f"unusual values of {quoted(usual)}, such as negative ones")
            if _untried_named(series):
                not_tried.append("the values that the models compare inputs with, which the original rejects")
        for result in series:
            varied = {**result.case.varied, "input set": position} if len(plans) > 1 else result.case.varied
            results.append(replace(result, case=replace(result.case, varied=varied)))
    return results


def _run_series(judge: Judge, plan: InputPlan) -> list[Judged]:
    """Run the cases of one set of inputs, in this order:

    1. The cases of `_start`. If the original runs in none of these cases, they are repeated with integers among the named values
       (constants that the models compare inputs with).
    2. If some free dimension was never above 1 in a case in which the original ran: cases with large equal sizes.
    3. If some facts about sizes only come from branches of Ifs: cases with sizes that contradict these facts.
    4. Cases with sizes of 0, and cases with unusual values.
    5. If the original rejects all cases with named values: search for larger sizes, and run the cases with named values again at
       the sizes that were found. (Named values may select another branch of an If, and this branch may need larger sizes.)

    Steps 3 and 4 are skipped if the original has run in no case. The series ends after ``_PATIENCE`` runs of the original that had
    to be stopped. If the time limit is reached, the series ends as soon as it has ``_LEAST`` cases.
    """
    inputs, learned, judged = plan.inputs, plan.learned, list[Judged]()
    started, known = _start(judge, inputs, learned, judged)
    if not _any_ran(judged) and inputs.names_integers:
        started, known = _start(judge, replace(inputs, only_named_integers=True), learned, judged)
    inputs, learned = (started, known) if _any_ran(judged) else (inputs, learned)
    if _untried_sizes(judged, inputs):
        _run(judge, inputs, inputs.uniform_cases(large=True), judged)
    if _any_ran(judged) and learned is not None and plan.learned_without_branches is not None:
        apart, before = inputs.contradicting_cases(learned, plan.learned_without_branches), len(judged)
        _run(judge, inputs, apart[:_FIRST], judged)
        if _any_ran(judged[before:]):
            _run(judge, inputs, apart[_FIRST:], judged)
    if _any_ran(judged) and not inputs.avoid_empty:
        _run(judge, inputs, inputs.empty_cases(learned), judged)
    if _any_ran(judged):
        _run(judge, inputs, inputs.unusual_cases(learned), judged)
    if _untried_named(judged) and (accepted := least_sizes(judge, inputs, learned, "named")) is not None:
        least, sizes = accepted
        others = replace(inputs, smallest_sizes=least).unusual_cases(sizes)
        _run(judge, inputs, [planned for planned in others if planned.point.kind == "named"], judged)
    return judged


def _start(judge: Judge, inputs: Inputs, learned: SizeFacts | None, judged: list[Judged]) -> tuple[Inputs, SizeFacts | None]:
    """Run the planned cases. If the original runs in few of them, search for sizes that it accepts.

    Before the search, cases with small equal sizes are tried. After the search, the planned cases run with the sizes that it found.
    All results are added to ``judged``.

    ``learned`` has the known facts about sizes, or is None. Return ``inputs`` and ``learned``, both completed by the sizes that the
    search found.
    """
    _run(judge, inputs, inputs.planned_cases(learned), judged)
    if learned is not None and not _any_ran(judged):
        _run(judge, inputs, inputs.planned_cases(None), judged)
    if _untried_sizes(judged, inputs):
        _run(judge, inputs, inputs.uniform_cases(large=False), judged)
    if sum(result.ran for result in judged) >= _FEW:
        return inputs, learned
    if not any(result.ran or result.timed_out for result in judged):
        judge.limit.budget.grant(_SEARCH_SECONDS)
    accepted = least_sizes(judge, inputs, learned)
    if accepted is None:
        return inputs, learned
    least, sizes = accepted
    inputs = replace(inputs, smallest_sizes=least)
    _run(judge, inputs, inputs.planned_cases(sizes), judged, _FEW)
    return inputs, sizes


def _run(judge: Judge, inputs: Inputs, planned_cases: Sequence[PlannedCase], judged: list[Judged], least: int = 0) -> None:
    for turn, planned in enumerate(planned_cases):
        spent = len(judged) >= _LEAST and turn >= least and judge.limit.budget.is_spent()
        if spent or sum(result.timed_out for result in judged) >= _PATIENCE:
            return
        if all(result.planned != planned for result in judged):
            judged.append(judge.judge(planned, inputs))


def _any_ran(judged: Sequence[Judged]) -> bool:
    return any(result.ran for result in judged)


def _untried_sizes(judged: Sequence[Judged], inputs: Inputs) -> list[str]:
    """Return the free dimensions whose size was never above 1 in a case in which the original ran."""
    dims = [result.case.dims for result in judged if result.ran]
    return [name for name in inputs.free_sizes if not any(sizes.get(name, 0) > 1 for sizes in dims)]


def _untried_integers(judged: Sequence[Judged], inputs: Inputs) -> list[str]:
    """Return the integer inputs for which no case with unusual values ran on the original."""
    points = [result.planned.point for result in judged if result.ran and result.planned.point.kind == "other integers"]
    tried = {name for point in points for name in ([point.only_input] if point.only_input else inputs.unusual_integers)}
    return [name for name in inputs.unusual_integers if name not in tried]


def _untried_named(judged: Sequence[Judged]) -> bool:
    """Return True if there were cases with named values, and the original rejected all of them."""
    return {result.case.status for result in judged if result.planned.point.kind == "named"} == {"skipped"}


def _shared_names(specs: Sequence[SessionSpec]) -> set[str]:
    counts = Counter(dim for spec in specs for dim in spec.dims or () if isinstance(dim, str))
    return {name for name, count in counts.items() if count > 1}


def _with_own_names(specs: Sequence[SessionSpec], names: Collection[str]) -> list[SessionSpec]:
    """Return ``specs`` with a new, unique name for each dimension whose name is in ``names``."""

    def renamed(spec: SessionSpec) -> SessionSpec:
        dims = tuple(f"{dim} of {spec.name}[{axis}]" if dim in names else dim for axis, dim in enumerate(spec.dims or ()))
        return spec if spec.dims is None else replace(spec, dims=dims)

    return [renamed(spec) for spec in specs]
