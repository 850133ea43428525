"""Compare a rewritten model with the original, and find the patches that make it different or slower.

If the models differ, the option ``on_difference`` decides what happens. ``raise`` raises an error that names the first patch that
makes a difference. ``keep`` returns a result without the patches that make a difference.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from ortscan.modelio import LoadedModel
from ortscan.pipeline.bisection import FindFault, culprit
from ortscan.pipeline.compare_with_original import first_line, is_refuted, warn_of_nothing_compared, why_nothing_was_compared
from ortscan.pipeline.rewriting import Rewriting, Rewritten
from ortscan.pipeline.self_check import fault_of, report_result, rewrite_soundly_in_opset, self_checked
from ortscan.report.words import refused_node
from rewrites.base.errors import OptionError, VerificationFailed
from rewrites.base.plain_text import shown
from rewrites.registry import RULES

if TYPE_CHECKING:
    from ortscan.verification import Verification

__all__ = [
    "Compare",
    "OnDifference",
    "first_difference_sentence",
    "on_difference_of",
    "slower_patch_sentence",
    "verified",
    "without_differences",
]

OnDifference = Literal["raise", "keep"]
Compare = Callable[[LoadedModel], "Verification"]
"""A function that compares a result with the original."""


def on_difference_of(value: Any) -> OnDifference:
    """Check the option ``on_difference``, and return it.

    Raise OptionError if it is neither ``raise`` nor ``keep``.
    """
    if isinstance(value, str) and value in ("raise", "keep"):
        return "raise" if value == "raise" else "keep"
    raise OptionError(f"on_difference must be 'raise' or 'keep', not {shown(value)}.")


def verified(
    rewriting: Rewriting,
    outcome: Rewritten,
    compare: Compare,
    on_difference: OnDifference = "raise",
    on_nothing: Literal["warn", "pass"] = "warn",
) -> Rewritten:
    """Compare ``outcome`` with the original, and return it with the comparison if no difference is found.

    Args:
        rewriting: the rewriting that produced ``outcome``.
        outcome: the result to compare.
        compare: compares a result with the original.
        on_difference: what to do about a difference. ``raise``: raise VerificationFailed with the name of the patch that makes it.
            ``keep``: issue a warning, and return a result without the patches that make a difference.
        on_nothing: what to do if nothing could be compared. ``warn``: issue a warning, and return ``outcome``. ``pass``: only
            return ``outcome``.
    """
    refused = refused_node(outcome.report)
    if not outcome.is_touched:
        if refused is not None and on_nothing == "warn":
            warn_of_nothing_compared(refused)
        return outcome
    verification = compare(outcome.loaded)
    if not is_refuted(verification):
        if not verification.ok and on_nothing == "warn":
            warn_of_nothing_compared(refused or why_nothing_was_compared(verification))
        return outcome._replace(verification=verification)
    if on_difference == "keep":
        kept = without_differences(rewriting, compare)
        return kept._replace(verification=compare(kept.loaded))
    difference = f"The rewritten model differs from the original: {first_line(verification)}"
    raise VerificationFailed(f"{difference}; {first_difference_sentence(rewriting, outcome, compare)}")


def without_differences(rewriting: Rewriting, compare: Compare) -> Rewritten:
    """Rewrite again, and return a result without the patches that make a difference.

    Issue a warning about each patch that is left out. ``compare`` is a function that compares a result with the original.
    """
    return report_result(rewriting, rewrite_soundly_in_opset(rewriting, _fault_finder(rewriting, compare)), "verification")


def first_difference_sentence(
    rewriting: Rewriting, outcome: Rewritten | None, compare: Compare, leave_out: str = "skip=['{}']"
) -> str:
    """Return a sentence that names the first patch with which the result differs from the original.

    Args:
        rewriting: the rewriting that produced ``outcome``.
        outcome: the result that differs; None to compute it again.
        compare: compares a result with the original.
        leave_out: the option that skips a rule, such as ``--skip {}``. The sentence advises this option, with the name of the rule
            in place of ``{}``.
    """
    outcome = self_checked(rewriting) if outcome is None else outcome
    patches = outcome.report.patches
    veto = culprit(rewriting.once, _fault_finder(rewriting, compare), len(patches), outcome.vetoes) if patches else None
    if veto is None:
        return "no single change was found that makes the difference"
    sentence = f"change {veto.after + 1}, {veto}, is the first that differs ({patches[veto.after].what})"
    can_be_skipped = any(rule.name == veto.rule and rule.use != "always" for rule in RULES)
    return f"{sentence}; to skip it: {leave_out.format(veto.rule)}" if can_be_skipped else sentence


def _fault_finder(rewriting: Rewriting, compare: Compare) -> FindFault:
    unsound = fault_of(rewriting)

    def find_fault(outcome: Rewritten) -> str | None:
        fault = unsound(outcome)
        if fault is not None or not outcome.is_touched:
            return fault
        verification = compare(outcome.loaded)
        return first_line(verification) if is_refuted(verification) else None

    return find_fault


def slower_patch_sentence(rewriting: Rewriting, is_slower: Callable[[LoadedModel], bool], stop_after: int | None = None) -> str:
    """Return a sentence that names the first patch that makes the result slower.

    ``is_slower`` measures a result. Only results with at most ``stop_after`` patches are considered.
    """
    outcome = self_checked(rewriting, stop_after)
    patches = outcome.report.patches

    def find_fault(tried: Rewritten) -> str | None:
        return "slower" if tried.is_touched and is_slower(tried.loaded) else None

    veto = culprit(rewriting.once, find_fault, len(patches), outcome.vetoes) if patches else None
    if veto is None:
        return "no single patch was found that makes it slower"
    return f"patch {veto.after + 1} makes it slower ({veto}: {patches[veto.after].what})"
