"""Store the weights of a result in fewer bits, for ``ortscan optimize --weights``."""

import argparse
from typing import TYPE_CHECKING

from ortscan.base.messages import quietly
from ortscan.cli.options import rewriting
from ortscan.cli.streams import show_progress
from ortscan.edge.border import wrap_errors

if TYPE_CHECKING:
    from ortscan.modelio import LoadedModel
    from rewrites.base.report import RewriteReport

__all__ = ["with_smaller_weights"]


@wrap_errors
@quietly
def with_smaller_weights(
    args: argparse.Namespace, loaded: "LoadedModel", report: "RewriteReport"
) -> "tuple[LoadedModel, RewriteReport]":
    """Return the result and its report after the weights were stored in the format of ``--weights``."""
    from ortscan.pipeline import smaller_weights
    from ortscan.pipeline.compiled_weights import compiled
    from ortscan.pipeline.rewriting import Rewriting, Rewritten

    original, result = Rewriting(args.source, **rewriting(args)), Rewritten(loaded, report, report.changed)
    with show_progress(f"storing weights as {args.weights}", args.quiet):
        outcome = smaller_weights.with_smaller_weights(original, result, args.weights, args.max_error, args.inputs, args.seed)
        if args.native:
            outcome = compiled(outcome, rewriting(args), None if args.no_verify else args.level)
    return outcome.loaded, outcome.report
