"""``ortscan optimize IN OUT``: rewrite, compare on onnxruntime, then write."""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ortscan.cli.console import stdout_console
from ortscan.cli.exit_codes import ExitCode
from ortscan.cli.files import check_readable, check_writable, read_arrays
from ortscan.cli.options import add_checking, add_display, add_report, add_rewriting, checking, rewriting
from ortscan.cli.passes import ListPasses
from ortscan.cli.progress import working
from rewrites.errors import OptionError, VerificationFailed

if TYPE_CHECKING:
    from ortscan.verify import Verification
    from rewrites.report import Report

__all__ = ["add", "run"]


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "optimize",
        help="take the loops out of a model",
        description="Take the loops out of a model, compare both on onnxruntime, and write the result if they agree.",
    )
    parser.add_argument("model", metavar="IN", help="the model to rewrite; it is not changed")
    parser.add_argument("output", metavar="OUT", nargs="?", help="where to write the result")
    parser.add_argument("-o", "--output", dest="output_option", metavar="OUT", help="the same")
    parser.add_argument("--dry-run", action="store_true", help="do all but write the model")
    parser.add_argument("--strict", action="store_true", help="fail with 4, and write nothing, if nothing changed")
    parser.add_argument("--save-as-external-data", action="store_true", help="keep the weights in a file beside the model")
    add_rewriting(parser)
    parser.add_argument("--list-passes", action=ListPasses, help="list the passes and stop")
    checks = add_checking(parser)
    checks.add_argument("--no-verify", action="store_true", help="do not compare on onnxruntime before writing")
    add_report(parser)
    add_display(parser, quiet=True)
    search = parser.add_argument_group("finding the rewrite to blame")
    search.add_argument("--stop-after", type=int, metavar="N", help="apply only the first N rewrites")
    search.add_argument("--debug", action="store_true", help="check the whole model after every rewrite")
    parser.set_defaults(run=run)


@dataclass(frozen=True)
class _Done:
    report: "Report"
    verification: "Verification | None"
    written: str | None


def run(args: argparse.Namespace) -> int:
    """Do it."""
    output = _output(args)
    check_readable(args.model)
    for path in (output, args.report):
        if path is not None:
            check_writable(path)
    inputs = read_arrays(args.inputs)
    quiet = args.quiet

    from ortscan import api

    with working(f"rewriting {args.model}", quiet):
        model, report = api.optimize_with_report(args.model, **rewriting(args), stop_after=args.stop_after, debug=args.debug)
    verification = None
    if not args.no_verify:
        with working("comparing both models on onnxruntime", quiet):
            verification = api.verify(args.model, model, inputs=inputs, **checking(args))
    same = verification is None or verification.ok
    unchanged = args.strict and not report.changed
    if output is not None and same and not unchanged:
        with working(f"writing {output}", quiet):
            api.write(model, output, source=args.model)
    else:
        output = None
    _show(args, _Done(report, verification, output))
    if verification is not None and not verification.ok:
        raise VerificationFailed(f"{args.model} and its rewrite differ, nothing was written: {verification.summary()}")
    if unchanged:
        print("ortscan: nothing changed, nothing was written (--strict)", file=sys.stderr)
        return ExitCode.UNCHANGED
    return ExitCode.OK


def _output(args: argparse.Namespace) -> str | None:
    if args.output is not None and args.output_option is not None:
        raise OptionError("The output is given twice: as OUT and with -o.")
    output: str | None = args.output if args.output is not None else args.output_option
    if output is None and not args.dry_run:
        raise OptionError("Where to write is missing: give OUT, or --dry-run to write nothing.")
    return None if args.dry_run else output
