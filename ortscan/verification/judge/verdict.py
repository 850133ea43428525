"""Draw the conclusion of a comparison from the results of its cases.

The caller may have passed recorded outputs. They are compared too.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx

from ortscan.running.budget import RUN_SECONDS
from ortscan.running.graph_index import all_nodes
from ortscan.verification.judge.blame import known_defect
from ortscan.verification.judge.compare_values import Gap, compare_values
from ortscan.verification.judge.judge import Judge, Judged
from ortscan.verification.result import Case, FirstDifference, OutputError, OutputResult, Verification
from rewrites.base.plain_text import counted

__all__ = ["RecordedOutcome", "compare_with_records", "conclude", "result_without_runs"]

_DISOWNED = (
    "onnxruntime computes output '{}' of the original differently if nodes that change nothing are added to it, "
    "so it cannot be compared{}"
)
_FAILED_LOOP = re.compile(r"the original fails: .*running (Scan|Loop) node\. Name:'([^']*)' Status Message: ((?!.*node\. Name:).*)")
"""The message if a loop fails, and not a node in its body. If a node in the body fails, the message names that node too."""


@dataclass
class RecordedOutcome:
    """The result of the comparison of both models with recorded outputs.

    Attributes:
        broken: a sentence for each recorded output that the original returns, but the rewritten model does not.
        unlike: a sentence for each recorded output that the original itself does not return.
        notes: notes for the reader of the verification.
    """

    broken: list[str] = field(default_factory=list)
    unlike: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def compare_with_records(judge: Judge, sets: Sequence[Mapping[str, Any]], recorded: Sequence[Mapping[str, Any]]) -> RecordedOutcome:
    """Run both models on inputs that the caller passed, and compare their outputs with recorded outputs.

    Args:
        judge: the judge that has both models.
        sets: the inputs of each run.
        recorded: the recorded outputs of each run, by name; empty if a run has none.
    """
    records, equal, tolerances = RecordedOutcome(), 0, judge.comparer.tolerances
    for number, (feed, record) in enumerate(zip(sets, recorded, strict=True)):
        if not record:
            continue
        where = f" of set {number}" if len(sets) > 1 else ""
        old, new = judge.before.run(feed, RUN_SECONDS), judge.after.run(feed, RUN_SECONDS)
        if old.values is None:
            records.notes.append(
                f"recorded outputs{where} were not compared, because the original does not run on the recorded inputs alone"
            )
            continue
        for position, name in enumerate(judge.before.outputs):
            if name not in record:
                continue
            own = compare_values(record[name], old.values[position], tolerances[name])
            other = None if new.values is None else compare_values(record[name], new.values[position], tolerances[name])
            if own.reason is not None:
                records.unlike.append(f"the original itself does not return the recorded output '{name}'{where}: {_in_words(own)}")
            elif other is None or other.reason is not None:
                why = "it does not run" if other is None else _in_words(other)
                records.broken.append(
                    f"the result does not return the recorded output '{name}'{where}, but the original does: {why}"
                )
            else:
                equal += 1
    if equal:
        records.notes.append(f"both return {counted(equal, 'recorded output')}")
    return records


def _in_words(gap: Gap) -> str:
    return f"at {list(gap.index)} {gap.reason}" if gap.index else str(gap.reason)


def result_without_runs(
    outputs: Sequence[str], problems: Sequence[str], notes: Sequence[str] = (), *, inconclusive: bool = False
) -> Verification:
    """Return the result of a comparison in which neither model ran.

    Args:
        outputs: the names of the model's outputs.
        problems: the reasons why the models did not run.
        notes: notes for the reader of the verification.
        inconclusive: True if the reasons do not show that the models differ.
    """
    results = [OutputResult(name, "not compared", 0.0, 0.0, 0.0, 0) for name in outputs]
    return Verification(False, (), results, None, tuple(problems), tuple(notes), inconclusive)


def conclude(
    judge: Judge,
    judged: Sequence[Judged],
    notes: Sequence[str],
    not_tried: Sequence[str],
    records: RecordedOutcome,
    original: onnx.ModelProto,
    inside: str = "",
) -> Verification:
    """Summarise the cases. The outcome is ok only if something was compared and nothing differs.

    Args:
        judge: the judge that ran the cases.
        judged: the results of all cases.
        notes: notes for the reader of the verification.
        not_tried: a description of each thing that no case covers.
        records: the result of the comparison with recorded outputs.
        original: the original model.
        inside: a phrase that names the first inner value that differs, or the cause of the difference; empty if unknown.
    """
    cases, comparer = [result.case for result in judged], judge.comparer
    outputs = [_summed_up(name, judge, cases) for name in judge.before.outputs]
    problems = _failures(cases) + [_DISOWNED.format(name, known_defect(original)) for name in sorted(comparer.optimizer_sensitive)]
    if not any(output.compared for output in outputs):
        problems += [] if problems else [_no_comparison_reason(cases, outputs, judge, original)]
    else:
        gaps = [gap for result in judged for gap in result.gaps.values()]
        if not any(gap.reason or gap.numbers for gap in gaps):
            problems.append(
                f"every output {_uncompared_text(gaps)} in every case, so nothing was learned: pass fitting inputs={{...}}"
            )
    problems += [*records.broken, *records.unlike]
    different = bool(records.broken) or any(output.status == "different" for output in outputs)
    failed = any(case.status == "fails only after" for case in cases)
    return Verification(
        ok=not problems and not different,
        cases=cases,
        outputs=outputs,
        first_difference=_first_difference(judged, inside),
        problems=tuple(problems),
        notes=(*notes, *records.notes, *comparer.notes, *_notes_on_outputs(judged, outputs, judge)),
        inconclusive=bool(problems) and not different and not failed,
        witness=next((result.witness[0] for result in judged if result.witness is not None), None),
        not_tried=tuple(not_tried),
    )


def _summed_up(name: str, judge: Judge, cases: Sequence[Case]) -> OutputResult:
    if name in judge.comparer.unstable:
        reason = "the original returns another value in each run"
        return OutputResult(name, "not comparable", 0.0, 0.0, 0.0, 0, reason)
    errors = [case.outputs[name] for case in cases if name in case.outputs]
    if not errors:
        return OutputResult(name, "not compared", 0.0, 0.0, 0.0, 0)

    def badness(error: OutputError) -> tuple[bool, float]:
        return error.reason is not None, math.inf if math.isnan(error.absolute) else error.absolute

    worst = max(errors, key=badness)
    numbers = (worst.absolute, worst.relative, worst.allowed)
    return OutputResult(name, "different" if worst.reason else "equal", *numbers, len(errors), worst.reason)


def _failures(cases: Sequence[Case]) -> list[str]:
    failed = [case for case in cases if case.status == "fails only after"]
    if not failed:
        return []
    others = f", and in {len(failed) - 1} more" if len(failed) > 1 else ""
    return [f"the result fails where the original runs ({failed[0].label}{others}): {failed[0].reason}"]


def _no_comparison_reason(cases: Sequence[Case], outputs: Sequence[OutputResult], judge: Judge, original: onnx.ModelProto) -> str:
    if not outputs:
        return "the model has no outputs"
    if len(judge.comparer.unstable) == len(outputs):
        return "every output of the original differs from run to run"
    if not cases:
        return f"there was no case to run{''.join(f' within {limit}' for limit in judge.limit.budget.hits)}"
    reasons = [(case.reason or "").removeprefix("only ") for case in cases]
    failure = _FAILED_LOOP.fullmatch(reasons[0])
    if failure is None or len(set(reasons)) > 1:
        return f"the original ran in none of {len(cases)} cases: {cases[0].reason}"
    kind, name, message = failure.groups()
    number = f"all {len(cases)} cases" if len(cases) > 1 else "the only case"
    return f"the original itself does not run: {_label(original, kind, name)} fails in {number}: {message.rstrip('. ')}"


def _label(original: onnx.ModelProto, kind: str, name: str) -> str:
    """Return a label such as ``Scan 'cell'`` for the node of type ``kind`` with this name.

    If the name is empty and only one node of the type has no name, the label contains the first output of that node. If several
    nodes have no name, return ``a Scan``.
    """
    outputs = [node.output[0] for node, _ in all_nodes(original) if node.op_type == kind and node.name == name and node.output]
    subject = name or (outputs[0] if len(outputs) == 1 else "")
    return f"{kind} '{subject}'" if subject else f"a {kind}"


def _notes_on_outputs(judged: Sequence[Judged], outputs: Sequence[OutputResult], judge: Judge) -> list[str]:
    unstable = sorted(judge.comparer.unstable)
    remarks = [f"output '{name}' was not compared: it differs from run to run of the original" for name in unstable]
    for output in outputs:
        gaps = [result.gaps[output.name] for result in judged if output.name in result.gaps]
        if output.status == "equal" and not any(gap.numbers for gap in gaps):
            remarks.append(f"output '{output.name}' {_uncompared_text(gaps)} in every case")
    return remarks


def _uncompared_text(gaps: Sequence[Gap]) -> str:
    if any(gap.left_out for gap in gaps):
        return "was NaN or sensitive to rounding"
    return "was NaN" if any(gap.elements for gap in gaps) else "was empty"


def _first_difference(judged: Sequence[Judged], inside: str) -> FirstDifference | None:
    for result in judged:
        for name, gap in result.gaps.items():
            if gap.reason is not None:
                return FirstDifference(name, result.case, gap.index, gap.before, gap.after, gap.reason, inside)
    return None
