"""What the verbs put on stdout, and into the HTML page."""

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from ortscan.cli.console import stdout_console
from ortscan.cli.page import Page
from ortscan.cli.streams import printing
from ortscan.cli.verification_text import verification_tables
from ortscan.cli.written import ADVICE, Sizes, print_json, rough_gain, verified, without_library, written
from ortscan.drawing.picture import Drawings
from ortscan.report import text
from ortscan.report.html import cards_of, report_sections
from ortscan.report.outcome import Report as Explanation
from ortscan.report.terminal import Entries
from ortscan.report.words import gone, headline, report_dict
from rewrites.base.report import Report

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench
    from ortscan.verification.result import Verification

__all__ = ["Outcome", "show_explanation", "show_outcome", "show_verification"]


@dataclass(frozen=True)
class Outcome:
    """What ``optimize`` did, with ``drawings`` where a page is written; ``written`` is None where nothing was."""

    report: Report
    drawings: Mapping[str, Drawings]
    verification: "Verification | None"
    written: Sizes | None
    bench: "Bench | None" = None


@printing()
def show_outcome(args: argparse.Namespace, outcome: Outcome) -> None:
    """Show the tables, a line on the verification and one on the file."""
    report = outcome.report
    facts = [verified(outcome.verification), written(args, outcome.written), *without_library(report)]
    if outcome.bench is not None:
        checked = "verified" if outcome.verification is not None else "not verified"
        facts.append(" · ".join([gone(report), outcome.bench.in_short(), checked]))
    elif report.changed and outcome.verification is not None and (gain := rough_gain(outcome.verification)):
        facts.append(" · ".join([gone(report), gain, "verified"]))
    if args.report is not None:
        _outcome_page(args, outcome).write(args)
    if args.json:
        print_json(
            input=args.model,
            output=asdict(outcome.written) if outcome.written else None,
            report=report_dict(report),
            verification=outcome.verification.to_dict() if outcome.verification is not None else None,
            **({"bench": outcome.bench.to_dict()} if outcome.bench is not None else {}),
        )
        return
    if args.quiet:
        return
    console = stdout_console(args.no_color)
    console.print(Entries([("", line) for line in (headline(report), *report.messages)]), soft_wrap=True)
    if report.loops:
        console.print(Text(), text.loop_table(report, every=args.verbose > 0), sep="\n")
    if report.changed:
        console.print(Text(), text.operator_table(report), sep="\n")
    if args.verbose and report.patches:
        console.print(Text(), text.patch_list(report), sep="\n", soft_wrap=True)
    console.print(Text(), Entries([("", fact) for fact in facts]), sep="\n", soft_wrap=True)
    if report.loops_left:
        console.print(Text("ortscan explain says more on the loops that are left", style="dim"))


@printing()
def show_explanation(args: argparse.Namespace, report: Explanation) -> None:
    """Show every loop in full."""
    if args.report is not None:
        page = Page("explain", Path(args.subject).name, [headline(report), *report.messages], cards_of(report))
        page.add(report_sections(report, report.drawings))
        page.write(args)
    if args.json:
        print_json(input=args.subject, report=report_dict(report))
        return
    console = stdout_console(args.no_color)
    console.print(text.explanation(report, every=args.verbose > 0), soft_wrap=True)
    if args.verbose and report.patches:
        console.print(Text(), text.patch_list(report), sep="\n", soft_wrap=True)


@printing()
def show_verification(args: argparse.Namespace, verification: "Verification") -> None:
    """Show the outcome, and with ``-v`` every output and case."""
    if args.report is not None:
        page = Page("verify", f"{Path(args.before).name} and {Path(args.after).name}", [])
        page.add_verification(verification)
        page.write(args)
    if args.json:
        print_json(before=args.before, after=args.after, verification=verification.to_dict())
        return
    console = stdout_console(args.no_color)
    console.print(Entries([("", verified(verification)), *([("", ADVICE)] if verification.inconclusive else [])]), soft_wrap=True)
    if args.verbose:
        console.print(Text(), verification_tables(verification), sep="\n")


def _outcome_page(args: argparse.Namespace, outcome: Outcome) -> Page:
    report = outcome.report
    page = Page("optimize", Path(args.model).name, [headline(report), *report.messages], cards_of(report))
    page.add_bench(outcome.bench)
    page.add(report_sections(report, outcome.drawings))
    page.add_verification(outcome.verification)
    page.add_sizes(outcome.written)
    return page
