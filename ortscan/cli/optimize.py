"""``ortscan optimize IN OUT``: rewrite, compare on onnxruntime, then write."""

import argparse
import sys
import time

from ortscan.cli.actions import ListPasses
from ortscan.cli.blame import (
    add_bench,
    add_reproducer,
    check_bench,
    check_reproducer,
    measure_result,
    name_culprit,
    name_slowing_change,
    without_differences,
    write_reproducer,
)
from ortscan.cli.files import add_output, check_report, name_of
from ortscan.cli.invocation import ExitCode, add_limits
from ortscan.cli.options import add_checking, add_display, add_level, add_report, add_rewriting, rewriting
from ortscan.cli.streams import show_progress
from ortscan.cli.weights import with_smaller_weights
from ortscan.cli.writing import checked_output, compare_with_original, write_model
from ortscan.verb_options import OPTIMIZE_OPTIONS, check_smaller_weights
from rewrites.base.errors import VerificationFailed
from rewrites.base.plain_text import one_line, sentence

__all__ = ["add", "run"]


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the parser of the verb ``optimize`` to ``verbs``."""
    parser = verbs.add_parser(
        "optimize",
        help="take the loops out of a model",
        description="Take the loops out of a model, compare the result with the original on onnxruntime, and write it if both "
        "agree.",
    )
    parser.add_argument("model", metavar="IN", help="the model to rewrite; a folder of models; - for standard input")
    add_output(parser)
    parser.add_argument("--strict", action="store_true", help="if nothing changed, write nothing and exit with 4")
    add_report(parser)
    options = add_rewriting(parser)
    options.add_argument("--list-passes", action=ListPasses, help="list the passes and exit")
    for name in ("weights", "max_error"):
        OPTIMIZE_OPTIONS[name].add_to(options)
    group = add_checking(parser)
    add_level(group)
    group.add_argument(
        "--on-difference",
        choices=("raise", "keep"),
        default="raise",
        help="what to do if the results differ: raise (default) writes nothing and names the change that causes the difference; "
        "keep leaves this change out and makes all others",
    )
    add_reproducer(group)
    add_bench(parser)
    add_display(parser).add_argument("-q", "--quiet", action="store_true", help="print errors only")
    add_limits(parser)
    search = parser.add_argument_group("finding the rewrite to blame")
    search.add_argument("--stop-after", type=int, metavar="N", help="make only the first N changes (-v numbers them)")
    search.add_argument("--debug", action="store_true", help="check the whole model after every change")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run ``ortscan optimize`` with parsed arguments. Return the exit code."""
    check_bench(args)
    check_reproducer(args)
    check_smaller_weights(args.weights, args.max_error)
    output = checked_output(args)
    check_report(args.report, args.model, output, args.inputs)

    from ortscan import api
    from ortscan.cli.show import ShownResult, show_outcome
    from ortscan.cli.writing import refutation
    from ortscan.drawing.drawings import drawings_of
    from ortscan.pipeline.answering import answer_of
    from ortscan.pipeline.compare_with_original import is_refuted
    from ortscan.report.words import refused_node

    started = time.monotonic()
    with show_progress(f"rewriting {name_of(args.model, args)}", args.quiet) as step:
        options = {"stop_after": args.stop_after, "debug": args.debug, "progress": step}
        loaded, report = api.rewritten(args.source, **rewriting(args), **options)
    args.spent = time.monotonic() - started
    verification = compare_with_original(args, loaded)
    if args.on_difference == "keep" and verification is not None and is_refuted(verification):
        loaded, report = without_differences(args)
        verification = compare_with_original(args, loaded)
    refuted = verification is not None and not verification.ok
    if args.weights is not None and not refuted:
        loaded, report = with_smaller_weights(args, loaded, report)
    unchanged = args.strict and not report.changed
    bench = measure_result(args, loaded, report, verification)
    slower = args.bench and bench is not None and bench.is_slower and not args.force
    drawings = (
        drawings_of({loop.where: loop.steps for loop in report.loops}, args.source, loaded.model) if args.report is not None else {}
    )
    sizes = None
    if output is not None and not refuted and not unchanged and not slower:
        sizes = write_model(args, loaded, output)
    show_outcome(args, ShownResult(report, drawings, verification, sizes, answer_of(report, bench, verification), bench))
    if verification is not None and refuted:
        message = refutation(verification, f"{name_of(args.model, args)} and its rewrite")
        if is_refuted(verification):
            message = f"{message}; {name_culprit(args)}"
            raise VerificationFailed(message + write_reproducer(args, loaded, verification, message))
        raise VerificationFailed(refused_node(report) or message)
    if bench is not None and slower:
        message = (
            f"the result is {bench.in_short()}, so nothing was written; {name_slowing_change(args)}; to write it anyway: --force"
        )
        print(f"ortscan: {sentence(one_line(message))}", file=sys.stderr)
        return ExitCode.SLOWER
    if unchanged:
        print("ortscan: nothing changed, so nothing was written (--strict).", file=sys.stderr)
        return ExitCode.UNCHANGED
    return ExitCode.OK
