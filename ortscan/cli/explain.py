"""``ortscan explain IN``: report what would become of every loop, and why.

``ortscan explain CODE``: explain a reason code.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ortscan.cli.actions import ListCodes
from ortscan.cli.files import check_readable, check_report, name_of
from ortscan.cli.invocation import ExitCode, add_limits
from ortscan.cli.options import add_display, add_report, add_rewriting, rewriting
from ortscan.cli.streams import naming_stdout_in_errors, show_progress, stdout_console
from ortscan.option_texts import read_name_list
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import counted, sentence
from rewrites.base.report import LoopReport, RewriteReport

if TYPE_CHECKING:
    from ortscan.report.codes import Code

__all__ = ["add", "run"]

_LIKE_A_CODE = re.compile(r"[A-Z0-9]+(-[A-Z0-9]+)*")


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the parser of the verb ``explain`` to ``verbs``."""
    parser = verbs.add_parser(
        "explain",
        help="report what would become of each loop of a model, or explain a reason code",
        description="Report what would become of each loop of a model, and why the remaining loops stay; or explain a reason code.",
    )
    parser.add_argument(
        "subject", metavar="IN|CODE", help="a model, a folder of models, - for standard input; or a reason code such as RECURRENCE"
    )
    parser.add_argument("--list-codes", action=ListCodes, help="list the reason codes, a line each, and exit")
    add_report(parser)
    add_rewriting(parser)
    parser.add_argument(
        "--no-advice", action="store_true", help="do not try and time options that may make the model faster, which takes seconds"
    )
    group = parser.add_argument_group("gates, for CI")
    group.add_argument(
        "--fail-on-loops", action="store_true", help="exit with 6 if optimize would leave a loop; compiled loops do not count"
    )
    group.add_argument(
        "--fail-on",
        type=_read_codes,
        metavar="CODE,CODE",
        help="exit with 6 if optimize would leave a loop that has one of these reason codes",
    )
    add_display(parser)
    add_limits(parser)
    parser.set_defaults(run=run)


def _read_codes(text: str) -> list[str]:
    """Read a list of reason codes."""
    from ortscan.report.codes import lookup, similar

    codes = read_name_list(text)
    for code in codes:
        if lookup(code) is None:
            raise argparse.ArgumentTypeError(f"there is no reason code {code}{_list_of(similar(code))}")
    return codes


def run(args: argparse.Namespace) -> int:
    """Run ``ortscan explain`` with parsed arguments. Return the exit code."""
    from ortscan.report.codes import lookup, similar

    code = lookup(args.subject)
    if Path(args.subject).exists() or (code is None and not _LIKE_A_CODE.fullmatch(args.subject)):
        return _explain_model(args)
    if code is None:
        raise OptionError(f"There is neither a file nor a reason code {args.subject}{_list_of(similar(args.subject))}.")
    if args.fail_on_loops or args.fail_on:
        raise OptionError(f"--fail-on-loops and --fail-on need a model, but {args.subject} is a reason code.")
    return _explain_code(args, code)


def _list_of(near: Sequence[str]) -> str:
    return f"; similar codes are {', '.join(near)}" if near else ""


@naming_stdout_in_errors()
def _explain_code(args: argparse.Namespace, code: "Code") -> int:
    if args.json:
        from ortscan.report.words import dump

        print(dump(code._asdict()))
    else:
        from ortscan.report.text import code_text

        stdout_console(args.no_color).print(code_text(code))
    return ExitCode.OK


def _explain_model(args: argparse.Namespace) -> int:
    check_readable(args.subject)
    check_report(args.report, args.subject)

    from ortscan.cli.show import show_explanation
    from ortscan.explaining import explained

    with show_progress(f"trying the rewrites on {name_of(args.subject, args)}") as step:
        report = explained(args.subject, **rewriting(args), advice=not args.no_advice, progress=step)
    show_explanation(args, report)
    left = _unwanted_loops(report, args)
    if not left:
        return ExitCode.OK
    loops = "; ".join(_what_is_left(loop, report.target) for loop in left)
    name = f" in {args.name_shown}" if hasattr(args, "name_shown") else ""
    print(sentence(f"ortscan: {counted(len(left), 'loop')} left{name}: {loops}"), file=sys.stderr)
    return ExitCode.LOOPS_LEFT


def _what_is_left(loop: LoopReport, target: str) -> str:
    """Return the path of a loop, what it became, and the codes of its reasons.

    What it became is named only if it is a recurrent node that the target does not run.
    """
    nodes = dict.fromkeys(fired.made.native for fired in loop.fired if fired.made.native)
    became = f", now a native {' and '.join(nodes)} that {target} does not run" if nodes and not loop.nodes_after else ""
    return f"{loop.where}{became} ({', '.join(reason.code for reason in loop.reasons)})"


def _unwanted_loops(report: RewriteReport, args: argparse.Namespace) -> list[LoopReport]:
    """Return the loops that ``--fail-on-loops`` and ``--fail-on`` forbid."""
    codes = {name.upper() for name in args.fail_on or ()}
    return [loop for loop in report.loops_left if args.fail_on_loops or codes.intersection(reason.code for reason in loop.reasons)]
