"""The options that several verbs share."""

import argparse
from typing import Any

from ortscan.option_texts import by_name, read_count, read_tolerance
from ortscan.running.budget import quick_seconds
from ortscan.verb_options import REWRITING_OPTIONS

__all__ = [
    "add_checking",
    "add_display",
    "add_level",
    "add_options",
    "add_report",
    "add_rewriting",
    "checking",
    "rewriting",
]


def add_rewriting(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options that control the rewriting."""
    group = parser.add_argument_group("rewriting")
    add_options(group, *REWRITING_OPTIONS)
    return group


def add_options(group: argparse._ActionsContainer, *names: str) -> None:
    """Add the options ``names``, which control the rewriting."""
    for name in names:
        REWRITING_OPTIONS[name].add_to(group)


def add_checking(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options that control the comparison on onnxruntime."""
    group = parser.add_argument_group("verification")
    group.add_argument(
        "--inputs",
        metavar="DATA",
        help="compare on these inputs instead of random ones: an .npz of arrays by input name, or a folder with input_0.pb, …; "
        "outputs recorded there (out:NAME, or output_0.pb) are compared too",
    )
    group.add_argument("--seed", type=read_count, default=0, metavar="N", help="seed of the random inputs (default 0)")
    group.add_argument(
        "--rtol",
        type=read_tolerance,
        metavar="X",
        help="tolerance relative to the largest value of an output (default: by element type)",
    )
    group.add_argument("--atol", type=read_tolerance, metavar="X", help="additional absolute tolerance (default: by element type)")
    return group


def add_level(group: argparse._ArgumentGroup) -> None:
    """Add the options that set how thoroughly the result is compared."""
    choice = group.add_mutually_exclusive_group()
    choice.add_argument(
        "--verify",
        choices=("full", "quick"),
        default="full",
        dest="level",
        help="how thoroughly to compare: full (default), or quick, which takes seconds",
    )
    choice.add_argument("--no-verify", action="store_true", help="do not compare on onnxruntime before writing")


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the option --report."""
    parser.add_argument("--report", metavar="X.html", help="write the full report as an HTML page")


def add_display(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options that control the text on the terminal."""
    group = parser.add_argument_group("display")
    group.add_argument(
        "--json",
        action="store_true",
        help="print only JSON on stdout: an object, or an array with an object for each model of a folder",
    )
    group.add_argument("-v", "--verbose", action="count", default=0, help="show more; -vv: tracebacks as well")
    group.add_argument("--no-color", action="store_true", help="no colours on a terminal (or set NO_COLOR)")
    return group


def checking(args: argparse.Namespace) -> dict[str, Any]:
    """Return the verification options as keywords of the API."""
    is_quick = getattr(args, "level", "full") == "quick"
    return {
        "level": "quick" if is_quick else "full",
        "time_limit": quick_seconds(args.spent) if is_quick else None,
        "inputs": args.inputs,
        "seed": args.seed,
        "rtol": args.rtol,
        "atol": args.atol,
        "shapes": by_name([*(args.shape or []), *(getattr(args, "fix_shape", None) or [])]),
        "dims": by_name([*(args.dim or []), *(getattr(args, "fix_dim", None) or [])]),
    }


def rewriting(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options that control the rewriting as keywords of the API.

    If --weights is set, loops are compiled later.
    """
    options = {name: option.value_in(args) for name, option in REWRITING_OPTIONS.items()}
    return options | ({} if getattr(args, "weights", None) is None else {"native": False})
