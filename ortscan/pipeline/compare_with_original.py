"""Compares a result with the original on onnxruntime, as thoroughly as an option asks for."""

from typing import TYPE_CHECKING, Any

from ortscan.base.messages import warn
from ortscan.modelio import AnyModel, LoadedModel, ModelLike
from ortscan.running.budget import Level, quick_seconds
from ortscan.soundness.output_shapes import declared_as_in
from rewrites.base.errors import OptionError, VerificationFailed
from rewrites.base.plain_text import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ortscan.verification import Verification

__all__ = [
    "LEVELS",
    "Level",
    "compare",
    "first_line",
    "is_refuted",
    "level_of",
    "require_equal",
    "warn_of_nothing_compared",
    "why_nothing_was_compared",
]

_AT_OTHER_SIZES = "to compare at sizes that the model runs with, pass shapes to ortscan.verify, or --shape to 'ortscan verify'"
LEVELS: tuple[Level, ...] = ("quick", "full")


def level_of(verify: Any) -> Level | None:
    """Read ``verify``; True is ``full``, False None. Raises OptionError for another value."""
    if type(verify).__name__ in ("bool", "bool_"):
        return "full" if verify else None
    for level in LEVELS:
        if isinstance(verify, str) and verify == level:
            return level
    raise OptionError(f"verify must be 'quick', 'full' or False, not {shown(verify)}.")


def compare(
    before: AnyModel,
    after: LoadedModel,
    level: Level,
    spent: float,
    shapes: "Mapping[str, Sequence[int | None]] | None" = None,
) -> "Verification":
    """Compare two models; a quick comparison takes its time by that ``spent`` on making one out of the other, in seconds."""
    from ortscan.verification import verify

    before = declared_as_in(before, after)
    return verify(before, after, shapes=shapes, level=level, time_limit=quick_seconds(spent) if level == "quick" else None)


def require_equal(before: ModelLike, after: LoadedModel, level: Level, spent: float) -> None:
    """Raise VerificationFailed where the two differ; warn where nothing could be compared."""
    verification = compare(before, after, level, spent)
    if is_refuted(verification):
        raise VerificationFailed(f"The migrated model is not what the original is: {first_line(verification)}")
    if not verification.ok:
        warn_of_nothing_compared(why_nothing_was_compared(verification))


def is_refuted(verification: "Verification") -> bool:
    """Whether something speaks against the result, rather than nothing for it."""
    return not verification.ok and not verification.inconclusive


def warn_of_nothing_compared(why: str) -> None:
    """Warn that a result is handed back that was not verified."""
    warn(f"The result was not verified: {why}")


def why_nothing_was_compared(verification: "Verification") -> str:
    """Return the outcome in one line and, if the model has free sizes, how to compare at sizes that it runs with."""
    if not any(case.dims for case in verification.cases):
        return first_line(verification)
    return f"{first_line(verification)}; {_AT_OTHER_SIZES}"


def first_line(verification: "Verification") -> str:
    """Return the outcome in one line."""
    return verification.summary().splitlines()[0]
