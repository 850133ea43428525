"""What the verbs put on stdout, and into the HTML page."""

import argparse
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from ortscan.cli.console import stdout_console
from ortscan.cli.streams import printing
from ortscan.cli.verification_text import verification_tables
from ortscan.cli.written import ADVICE, Sizes, print_json, verified, written
from ortscan.modelio.destination import destination
from ortscan.modelio.replacing import Replacement
from ortscan.report import html, text
from ortscan.report.as_json import report_dict
from ortscan.report.tables import safe
from ortscan.report.words import headline
from rewrites.base.errors import ModelFileError
from rewrites.base.report import Report

if TYPE_CHECKING:
    from ortscan.verification.result import Verification

__all__ = ["Outcome", "show_explanation", "show_outcome", "show_verification"]


@dataclass(frozen=True)
class Outcome:
    """What ``optimize`` did; ``written`` is None where nothing was."""

    report: Report
    verification: "Verification | None"
    written: Sizes | None


@printing()
def show_outcome(args: argparse.Namespace, outcome: Outcome) -> None:
    """Show the tables, a line on the verification and one on the file."""
    report = outcome.report
    facts = [verified(outcome.verification), written(args, outcome.written)]
    _write_page(args.report, report, args.model, facts)
    if args.json:
        print_json(
            input=args.model,
            output=asdict(outcome.written) if outcome.written else None,
            report=report_dict(report),
            verification=outcome.verification.to_dict() if outcome.verification is not None else None,
        )
        return
    if args.quiet:
        return
    console = stdout_console(args.no_color)
    console.print(Text(headline(report)), *(safe(message) for message in report.messages), sep="\n")
    if report.loops:
        console.print(Text(), text.loop_table(report, every=args.verbose > 0), sep="\n")
    if report.changed:
        console.print(Text(), text.operator_table(report), sep="\n")
    if args.verbose and report.patches:
        console.print(Text(), text.patch_list(report), sep="\n")
    console.print(Text(), *(safe(fact) for fact in facts), sep="\n")
    if report.loops_left:
        console.print(Text("ortscan explain says more on the loops that are left", style="dim"))


@printing()
def show_explanation(args: argparse.Namespace, report: Report) -> None:
    """Show every loop in full."""
    _write_page(args.report, report, args.subject, [])
    if args.json:
        print_json(input=args.subject, report=report_dict(report))
        return
    console = stdout_console(args.no_color)
    console.print(text.explanation(report))
    if args.verbose and report.patches:
        console.print(Text(), text.patch_list(report), sep="\n")


@printing()
def show_verification(args: argparse.Namespace, verification: "Verification") -> None:
    """Show the outcome, and with ``-v`` every output and case."""
    if args.json:
        print_json(before=args.before, after=args.after, verification=verification.to_dict())
        return
    console = stdout_console(args.no_color)
    console.print(safe(verified(verification)))
    if verification.inconclusive:
        console.print(safe(ADVICE))
    if args.verbose:
        console.print(Text(), verification_tables(verification), sep="\n")


def _write_page(path: str | None, report: Report, title: str, facts: list[str]) -> None:
    if path is not None:
        try:
            with Replacement() as files:
                files.open(destination(path)).write(html.page(report, title, facts).encode(errors="backslashreplace"))
                files.commit()
        except OSError as error:
            raise ModelFileError(f"{path} cannot be written: {error.strerror}.") from None
