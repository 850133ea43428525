"""``ortscan explain IN``: report what would become of every loop, and why.

``ortscan explain CODE``: explain a reason code.
"""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ortscan.cli.actions import ListCodes
from ortscan.cli.files import check_readable, check_report
from ortscan.cli.invocation import ExitCode, add_limits
from ortscan.cli.options import add_display, add_report, add_rewriting, rewriting
from ortscan.cli.streams import naming_stdout_in_errors, show_progress, stdout_console
from rewrites.base.errors import OptionError

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
    add_display(parser)
    add_limits(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run ``ortscan explain`` with parsed arguments. Return the exit code."""
    if Path(args.subject).exists():
        return _explain_model(args)
    from ortscan.report.codes import lookup, similar

    code = lookup(args.subject)
    if code is not None:
        return _explain_code(args, code)
    if _LIKE_A_CODE.fullmatch(args.subject):
        near = ", ".join(similar(args.subject))
        raise OptionError(
            f"There is neither a file nor a reason code {args.subject}{f'; similar codes are {near}' if near else ''}."
        )
    return _explain_model(args)


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

    with show_progress(f"trying the rewrites on {args.subject}") as step:
        report = explained(args.subject, **rewriting(args), advice=not args.no_advice, progress=step)
    show_explanation(args, report)
    return ExitCode.OK
