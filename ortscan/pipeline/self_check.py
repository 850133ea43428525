"""Rewrite a model so that the result is always sound.

A sound result is valid and has the same types and shapes as the original. Patches that make a result unsound are taken back (see
``bisection``).
"""

import functools
import logging
import re
from typing import TYPE_CHECKING

from ortscan.base.messages import warn
from ortscan.base.proto_graphs import default_opset
from ortscan.modelio import load
from ortscan.ort.model_errors import checker_fault
from ortscan.pipeline.bisection import BisectionResult, FindFault, rewrite_soundly
from ortscan.pipeline.compare_with_original import compare, first_line
from ortscan.pipeline.rewriting import Rewriting, Rewritten
from ortscan.report.words import headline
from ortscan.soundness.corrections import fault_after_corrections
from ortscan.soundness.lacking import lacking
from ortscan.soundness.new_fault import Original
from ortscan.soundness.output_shapes import warn_of_redeclarations
from rewrites.base.errors import InvariantBroken, OptionError, is_from_elsewhere
from rewrites.base.report import Reason, RewriteReport
from rewrites.base.vetoes import Lacking, NoDefect
from rewrites.cleanup.constant_branches import is_if
from rewrites.driver.engine import count_operators
from rewrites.graph.walk import all_nodes

if TYPE_CHECKING:
    from ortscan.verification import Verification

__all__ = ["fault_of", "original_result", "report_result", "rewrite_soundly_in_opset", "self_checked"]

_log = logging.getLogger("ortscan.rewriting")
_REPORT_IT = "this is a defect of ortscan; please report it with the model"


def self_checked(rewriting: Rewriting, stop_after: int | None = None) -> Rewritten:
    """Rewrite the model, and return a sound result without the patches that are faulty.

    ``stop_after`` is the maximum number of patches; None for any number.

    If no result is sound, return the original model. Raise OptionError if ``fix_shapes`` contradicts the model. With the option
    ``debug``, raise InvariantBroken if the first result is not sound.
    """
    find_fault = fault_of(rewriting)
    if rewriting.debug:
        outcome = rewriting.once(stop_after)
        fault = find_fault(outcome)
        if fault is not None:
            raise InvariantBroken(f"the result is not sound: {fault}")
        return outcome
    sound = rewrite_soundly_in_opset(rewriting, find_fault, stop_after)
    return report_result(rewriting, sound, "the self-check")


def fault_of(rewriting: Rewriting) -> FindFault:
    """Return a function that checks rewritten models.

    The function takes a result of ``rewriting``, and returns its fault, or None if the result is sound. If the only fault is that
    declared shapes of outputs contradict those that onnx infers, the function corrects the result, and returns None.
    """
    original = Original(rewriting.model)

    def find(outcome: Rewritten) -> str | None:
        fault = fault_after_corrections(original, outcome.loaded) if outcome.is_touched else None
        if fault is None and rewriting.runtime is not None:
            return lacking(outcome.loaded.model, rewriting.runtime, original.loaded.model)
        return fault

    return find


def rewrite_soundly_in_opset(rewriting: Rewriting, find_fault: FindFault, stop_after: int | None = None) -> BisectionResult:
    """Rewrite the model without the patches that ``find_fault`` rejects.

    ``stop_after`` is the maximum number of patches; None for any number.

    If the option ``opset`` is ``auto`` and even the result without any patch is faulty, try again in the model's own opset.
    """
    original = Original(rewriting.model)

    def is_valid() -> bool:
        return checker_fault(original.proto) is None

    sound = rewrite_soundly(rewriting.once, find_fault, stop_after, is_valid)
    if sound.result is not None or rewriting.opset != "auto":
        return sound
    in_own_opset = rewrite_soundly(functools.partial(rewriting.once, opset="keep"), find_fault, stop_after, is_valid)
    return in_own_opset if in_own_opset.result is not None else sound


def report_result(rewriting: Rewriting, sound: BisectionResult, finder: str) -> Rewritten:
    """Return the sound result, or the original if no result is sound.

    Issue warnings about the patches that were taken back.

    Args:
        rewriting: the model and the options.
        sound: the outcome of the search for faulty patches.
        finder: a name for the check that found the faults, such as "the self-check". The warnings use this name.

    Raises:
        OptionError: no result runs on the onnxruntime that the option ``runtime`` selects.
    """
    if isinstance(sound.fault, Lacking) and sound.result is None:
        raise OptionError(f"runtime: the model cannot be written for it: {sound.fault}.")
    if sound.result is None:
        return original_result(rewriting, f"{finder} found it unsound: {sound.fault}")
    outcome = sound.result
    outcome.report.messages += warn_of_redeclarations(outcome.loaded)
    blamed: list[str] = []
    for veto in sound.vetoes:
        if isinstance(veto.why, Lacking):
            outcome.report.messages.append(f"{veto} was skipped: {veto.why}")
        else:
            blamed.append(f"{finder} took back {veto}: {veto.why}")
            outcome.report.messages.append(blamed[-1])
    if sound.fault is not None:
        sentence = f"{finder} took back all patches after the first {len(outcome.report.patches)}: {sound.fault}"
        outcome.report.messages.append(sentence)
        if not isinstance(sound.fault, Lacking):
            blamed.append(sentence)
        _give_reason(outcome.report, sound.fault)
    _warn(rewriting, blamed)
    for fired in outcome.report.patches:
        _log.debug("change %d, %s on %s: %s", fired.number, fired.rule, fired.loop, fired.what)
    _log.info("%s", headline(outcome.report))
    return outcome._replace(vetoes=sound.vetoes)


def original_result(rewriting: Rewriting, why: str) -> Rewritten:
    """Return the original model as the result, and issue a warning with ``why`` as the reason.

    Raise OptionError if the options build sizes into the model, because the original is not limited to these sizes. Raise
    InvariantBroken if the options require another opset than that of the original.
    """
    if rewriting.fixed:
        raise OptionError(f"fix_shapes: the model cannot have these sizes: {why}.{_advice_on_ifs(rewriting)}")
    own = default_opset(Original(rewriting.model).proto.opset_import)
    is_too_new = rewriting.runtime is not None and (own or 1) > rewriting.runtime.opset
    if is_too_new or str(rewriting.opset) not in ("auto", "keep", str(own)):
        raise InvariantBroken(f"The model cannot be rewritten in opset {rewriting.opset}: {why}.")
    loaded = load(rewriting.model)
    loaded.unchanged = None if loaded.tied else rewriting.model
    counted = count_operators(loaded.model.graph)
    report = _untouched(rewriting)
    report.operators_before = report.operators_after = counted
    report.tied, report.fixed, report.messages = bool(loaded.tied), bool(loaded.built_in), loaded.tied + loaded.built_in
    report.messages.append(f"the model is unchanged, because {why}")
    _warn(rewriting, report.messages[-1:])
    _give_reason(report, why)
    return Rewritten(loaded, report, is_touched=False)


def _advice_on_ifs(rewriting: Rewriting) -> str:
    """Return advice on built-in sizes that contradict a branch of an If, or "" if the model has no If."""
    if not any(is_if(node) for node in all_nodes(load(rewriting.model).model.graph)):
        return ""
    return " If they fit only one branch of an If, also fix the input that chooses it (fix_inputs)."


def _untouched(rewriting: Rewriting) -> RewriteReport:
    try:
        report = rewriting.once(0, opset="keep").report
    except Exception as error:
        if is_from_elsewhere(error):
            raise
        return RewriteReport()
    report.flattened, report.fixed, report.migrated, report.kernel_gaps = 0, False, False, []
    report.unplanned = False
    return report


def _warn(rewriting: Rewriting, sentences: list[str]) -> None:
    """Issue a warning for each of ``sentences``, which are about patches that were taken back.

    The warnings also ask the user to report the defect. If the original fails too, the warnings give its error instead: on all
    generated inputs, or on some of them in an operator that the sentence names.
    """
    verification = compare(rewriting.model, load(rewriting.model), "quick", 0.0) if sentences else None
    for sentence in sentences:
        warn(f"{sentence}; {_REPORT_IT if verification is None else _cause(verification, sentence)}.")


def _cause(verification: "Verification", sentence: str) -> str:
    """Return what causes the fault that ``sentence`` describes.

    ``verification``: the comparison of the original with itself.
    """
    if verification.inconclusive:
        return f"the original model fails too: {first_line(verification)}"
    named = tuple(f"running {operator} node" for operator in re.findall(r"Op \((\w+)\)", sentence))
    reasons = (re.split("fails: |returned while ", case.reason)[-1] for case in verification.cases if case.reason is not None)
    failed = next((reason for reason in reasons if reason.startswith(named)), None)
    return _REPORT_IT if failed is None else f"the original model fails too for some inputs: {failed}"


def _give_reason(report: RewriteReport, why: str) -> None:
    for loop in report.loops_left:
        loop.reasons = [Reason("none", why.code if isinstance(why, NoDefect) else "SELF-CHECK", why)]
