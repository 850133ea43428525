"""Compare a rewritten model with the original on onnxruntime, as thoroughly as ``verify`` requires."""

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
    "require_no_difference",
    "warn_of_nothing_compared",
    "why_nothing_was_compared",
]

LEVELS: tuple[Level, ...] = ("quick", "full")


def level_of(verify: Any) -> Level | None:
    """Return the level of comparison that the option ``verify`` requests.

    ``quick`` and ``full`` are returned unchanged. True means ``full``, and False means None. Raise OptionError for other values.
    """
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
    """Compare two models on onnxruntime.

    Args:
        before: the original.
        after: the result.
        level: how thorough the comparison is.
        spent: the seconds that rewriting took. They determine the time limit of a quick comparison (see ``quick_seconds``).
        shapes: the shapes of inputs to compare at.
    """
    from ortscan.verification import verify

    before = declared_as_in(before, after)
    return verify(before, after, shapes=shapes, level=level, time_limit=quick_seconds(spent) if level == "quick" else None)


def require_equal(before: ModelLike, after: LoadedModel, level: Level, spent: float) -> None:
    """Raise VerificationFailed if the models differ. Issue a warning if nothing could be compared.

    See `compare` for the arguments.
    """
    require_no_difference(compare(before, after, level, spent), "The migrated model differs from the original")


def require_no_difference(verification: "Verification", difference: str, verb: str = "ortscan.verify") -> None:
    """Raise VerificationFailed, with ``difference`` as the message, if the models differ.

    Issue a warning if nothing could be compared. ``verb``: the function that compares at other sizes.
    """
    if is_refuted(verification):
        raise VerificationFailed(f"{difference}: {first_line(verification)}")
    if not verification.ok:
        warn_of_nothing_compared(why_nothing_was_compared(verification, verb))


def is_refuted(verification: "Verification") -> bool:
    """Return True if the comparison found a difference between the models.

    Return False if they are equal, or if nothing could be compared.
    """
    return not verification.ok and not verification.inconclusive


def warn_of_nothing_compared(why: str) -> None:
    """Issue a warning that the result was not verified, with ``why`` as the reason."""
    warn(f"The result was not verified: {why}")


def why_nothing_was_compared(verification: "Verification", verb: str = "ortscan.verify") -> str:
    """Return in one line why nothing was compared.

    If the model has free sizes, the line also says how to choose other sizes. ``verb``: the function that compares at them.
    """
    if not any(case.dims for case in verification.cases):
        return first_line(verification)
    return f"{first_line(verification)}; to compare at sizes that the model runs with, pass shapes to {verb}"


def first_line(verification: "Verification") -> str:
    """Return the outcome of a comparison in one line: the first line of its summary."""
    return verification.summary().splitlines()[0]
