"""What several verbs say at the end: whether the models were compared, what was written, and the whole as JSON."""

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ortscan.base.release import __version__
from ortscan.report.words import dump, size
from rewrites.base.plain_text import one_line

if TYPE_CHECKING:
    from ortscan.verification.result import Verification
    from rewrites.base.report import Report

__all__ = ["ADVICE", "Sizes", "print_json", "refutation", "rough_gain", "verified", "without_library", "written"]


_MUCH = 1.25
"""Runs that are compared are not repeated: less is noise."""
ADVICE = "give inputs that the original runs on: --inputs DATA.npz"


@dataclass(frozen=True)
class Sizes:
    """A written file, and the bytes of the model before and after, external data included."""

    path: str
    before: int
    after: int


def verified(verification: "Verification | None") -> str:
    """Say how a comparison ended."""
    if verification is None:
        return "not verified (--no-verify)"
    return f"{'verified' if verification.ok else 'NOT verified'} on onnxruntime: {one_line(verification.summary())}"


def rough_gain(verification: "Verification") -> str:
    """Say how much faster or slower the result was while the two were compared; nothing where that is not much."""
    factor = verification.times_as_fast
    if not verification.ok or factor is None or 1 / _MUCH < factor < _MUCH:
        return ""
    said = f"{factor:.1f} x faster" if factor > 1 else f"{1 / factor:.1f} x slower"
    return f"about {said} in the runs compared (--bench measures it)"


def without_library(report: "Report") -> list[str]:
    """Say that what is compiled elsewhere runs as before here, where this ortscan has no library."""
    from ortscan.native.library import why_not

    why = why_not()
    is_planned = any(operator.startswith("ai.ortscan.") for operator in report.operators_after)
    return [f"here what is planned runs as before: {why}"] if is_planned and why else []


def refutation(verification: "Verification", what: str) -> str:
    """Say why nothing was written: ``what`` was not found to agree."""
    found = verification.summary().splitlines()[0]
    advice = f"; {ADVICE}, or write without comparing: --no-verify" if verification.inconclusive else ""
    return f"{what} were not found to agree, so nothing was written: {found}{advice}"


def written(args: argparse.Namespace, sizes: Sizes | None) -> str:
    """Say what was written."""
    if sizes is None:
        return f"nothing written{' (--dry-run)' if args.dry_run else ''}"
    return f"wrote {sizes.path}: {size(sizes.after)}, before {size(sizes.before)}"


def print_json(**document: Any) -> None:
    """Print one JSON object."""
    print(dump({"ortscan": __version__, **document}))
