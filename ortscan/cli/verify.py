"""``ortscan verify A B``: check whether two models compute the same on onnxruntime."""

import argparse

from ortscan.cli.files import check_npz, check_readable, check_report, name_of
from ortscan.cli.invocation import ExitCode, add_limits
from ortscan.cli.options import add_checking, add_display, add_options, add_report, checking
from ortscan.cli.streams import show_progress

__all__ = ["add", "run"]


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the parser of the verb ``verify`` to ``verbs``."""
    parser = verbs.add_parser(
        "verify",
        help="compare two models on onnxruntime",
        description="Run two models on the same inputs, at several sizes of each free dimension, and compare their outputs. "
        "The exit code is 3 if they differ.",
    )
    parser.add_argument("before", metavar="A", help="the original model; a folder of models; - for standard input")
    parser.add_argument("after", metavar="B", help="the model that should compute the same; a folder with a model for each of A")
    add_report(parser)
    add_options(add_checking(parser), "shapes", "dims")
    add_display(parser)
    add_limits(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run ``ortscan verify`` with parsed arguments. Return the exit code."""
    check_readable(args.before)
    check_readable(args.after)
    if args.inputs is not None:
        check_npz(args.inputs)
    check_report(args.report, args.before, args.after, args.inputs)

    from ortscan import api
    from ortscan.cli.show import show_verification

    with show_progress(f"comparing {name_of(args.before, args)} and {name_of(args.after, args)} on onnxruntime"):
        verification = api.verify(args.before, args.after, **checking(args))
    show_verification(args, verification)
    return ExitCode.OK if verification.ok else ExitCode.DIFFERENT
