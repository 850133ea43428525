"""What becomes of a rewritten model that is compared with the original before anyone gets it, as an option asks for."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from ortscan.modelio import LoadedModel
from ortscan.pipeline.bisection import FindFault, culprit
from ortscan.pipeline.compare_with_original import first_line, is_refuted, warn_of_nothing_compared, why_nothing_was_compared
from ortscan.pipeline.rewriting import Outcome, Rewriting
from ortscan.pipeline.self_check import fault_of, self_checked, soundest_of, tell
from ortscan.report.words import refused_node
from rewrites.base.errors import OptionError, VerificationFailed
from rewrites.base.plain_text import shown
from rewrites.registry import RULES

if TYPE_CHECKING:
    from ortscan.verification import Verification

__all__ = ["Compare", "OnDifference", "kept", "named", "on_difference_of", "verified"]

OnDifference = Literal["raise", "keep"]
Compare = Callable[[LoadedModel], "Verification"]
"""Compares a result with the original."""


def on_difference_of(given: Any) -> OnDifference:
    """Read ``on_difference``. Raises OptionError for another value."""
    if isinstance(given, str) and given in ("raise", "keep"):
        return "raise" if given == "raise" else "keep"
    raise OptionError(f"on_difference must be 'raise' or 'keep', not {shown(given)}.")


def verified(
    rewriting: Rewriting,
    outcome: Outcome,
    compare: Compare,
    on_difference: OnDifference = "raise",
    on_nothing: Literal["warn", "pass"] = "warn",
) -> Outcome:
    """Return ``outcome`` where it computes what the original computes, or where that cannot be found out, with a warning.

    Where it does not: raise VerificationFailed, which names the patch, or return what does without that patch, with a warning.
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
        return outcome
    if on_difference == "keep":
        return kept(rewriting, compare)
    said = f"The rewritten model is not what the original is: {first_line(verification)}"
    raise VerificationFailed(f"{said}; {named(rewriting, outcome, compare)}")


def kept(rewriting: Rewriting, compare: Compare) -> Outcome:
    """Rewrite with all patches but those that make a difference."""
    return tell(rewriting, soundest_of(rewriting, _fault_finder(rewriting, compare)), "verification")


def named(rewriting: Rewriting, outcome: Outcome | None, compare: Compare, leave_out: str = "skip=['{}']") -> str:
    """Search for the change that makes the difference, and say which it is; ``outcome`` is what differs, where it is at hand.

    ``leave_out``: how the caller asks for a rewriting without a rule.
    """
    outcome = self_checked(rewriting) if outcome is None else outcome
    patches = outcome.report.patches
    veto = culprit(rewriting.once, _fault_finder(rewriting, compare), len(patches), outcome.vetoes) if patches else None
    if veto is None:
        return "no single change was found that makes the difference"
    said = f"change {veto.after + 1}, {veto}, is the first that differs ({patches[veto.after].what})"
    is_left_out = any(rule.name == veto.rule and rule.use != "always" for rule in RULES)
    return f"{said}; to do without it: {leave_out.format(veto.rule)}" if is_left_out else said


def _fault_finder(rewriting: Rewriting, compare: Compare) -> FindFault:
    unsound = fault_of(rewriting)

    def find_fault(outcome: Outcome) -> str | None:
        fault = unsound(outcome)
        if fault is not None or not outcome.is_touched:
            return fault
        verification = compare(outcome.loaded)
        return first_line(verification) if is_refuted(verification) else None

    return find_fault
