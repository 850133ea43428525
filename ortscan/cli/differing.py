"""What ``ortscan optimize`` does where the result is not what the original is: finds the change that does it."""

import argparse
from typing import TYPE_CHECKING

from ortscan.base.quiet import quietly
from ortscan.cli.options import checking, rewriting
from ortscan.cli.progress import working
from ortscan.cli.writing import original

if TYPE_CHECKING:
    from ortscan.modelio import LoadedModel
    from ortscan.verification.result import Verification
    from rewrites.base.report import Report

__all__ = ["culprit", "without_differences"]


@quietly
def culprit(args: argparse.Namespace) -> str:
    """Say which change makes the difference."""
    from ortscan.pipeline.on_difference import named
    from ortscan.pipeline.rewriting import Rewriting

    with working("looking for the change that makes the difference", args.quiet):
        return named(Rewriting(args.given, **rewriting(args)), None, lambda result: _compared(args, result), "--skip {}")


@quietly
def without_differences(args: argparse.Namespace) -> "tuple[LoadedModel, Report]":
    """Rewrite with all changes but those that make a difference."""
    from ortscan.pipeline.on_difference import kept
    from ortscan.pipeline.rewriting import Rewriting

    with working("looking for the changes that make a difference", args.quiet):
        outcome = kept(Rewriting(args.given, **rewriting(args)), lambda result: _compared(args, result))
    return outcome.loaded, outcome.report


def _compared(args: argparse.Namespace, result: "LoadedModel") -> "Verification":
    from ortscan import api

    return api.verify(original(args), result, **checking(args))
