"""Names the patch that makes a result slower than the original, by the bisection that finds patches that make it faulty."""

from collections.abc import Callable

from ortscan.modelio import LoadedModel
from ortscan.pipeline.bisection import culprit
from ortscan.pipeline.rewriting import Outcome, Rewriting
from ortscan.pipeline.self_check import self_checked

__all__ = ["named_slower"]


def named_slower(rewriting: Rewriting, is_slower: Callable[[LoadedModel], bool], stop_after: int | None = None) -> str:
    """Search for a patch with which the result is slower, and without which it is not, and say which it is."""
    outcome = self_checked(rewriting, stop_after)
    patches = outcome.report.patches

    def find_fault(tried: Outcome) -> str | None:
        return "slower" if tried.is_touched and is_slower(tried.loaded) else None

    veto = culprit(rewriting.once, find_fault, len(patches), outcome.vetoes) if patches else None
    if veto is None:
        return "no single patch was found that makes it so"
    return f"patch {veto.after + 1} makes it so ({veto}: {patches[veto.after].what})"
