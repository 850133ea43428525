"""The output of the verbs: on stdout, and in the HTML page of ``--report``."""

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from ortscan.cli.files import name_of
from ortscan.cli.page import Page
from ortscan.cli.streams import naming_stdout_in_errors, stdout_console
from ortscan.cli.writing import (
    ADVICE,
    WrittenSizes,
    print_json,
    result_lines,
    verification_lines,
    written_dict,
    written_sentence,
)
from ortscan.drawing.picture import Drawings
from ortscan.page.document import section
from ortscan.report import text
from ortscan.report.answer import Answer, opening
from ortscan.report.html import cards_of, migration_operators, migration_scans, report_sections
from ortscan.report.outcome import Report as Explanation
from ortscan.report.terminal import Entries, safe, table
from ortscan.report.text import conversion_table, scan_table
from ortscan.report.words import migration_headline, report_dict
from rewrites.base.report import RewriteReport
from rewrites.migration import Migration

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench
    from ortscan.verification.result import Case, OutputResult, Verification

__all__ = ["ShownResult", "show_explanation", "show_migration", "show_outcome", "show_verification"]


@dataclass(frozen=True)
class ShownResult:
    """The results of ``optimize``.

    ``drawings`` is empty without --report. ``written`` is None if nothing was written. ``bench`` is None without --bench.
    """

    report: RewriteReport
    drawings: Mapping[str, Drawings]
    verification: "Verification | None"
    written: WrittenSizes | None
    answer: Answer
    bench: "Bench | None" = None


@naming_stdout_in_errors()
def show_outcome(args: argparse.Namespace, outcome: ShownResult) -> None:
    """Show the answer, the tables, a line on the verification and a line on the file."""
    report = outcome.report
    how = "with float32 weights" if report.weights is not None and report.weights.stored else "on onnxruntime"
    facts = [*verification_lines(outcome.verification, how), *result_lines(args, report, outcome.written)]
    if outcome.bench is not None and len(outcome.bench.results) > 1:
        facts.append(f"timed at all sizes: {outcome.bench.in_short()}")
    if args.report is not None:
        _outcome_page(args, outcome).write(args)
    if args.json:
        print_json(
            input=name_of(args.model, args),
            output=written_dict(args, outcome.written),
            answer=outcome.answer.to_dict(),
            report=report_dict(report),
            verification=outcome.verification.to_dict() if outcome.verification is not None else None,
            **({"bench": outcome.bench.to_dict()} if outcome.bench is not None else {}),
        )
        return
    if args.quiet:
        return
    console = stdout_console(args.no_color)
    console.print(text.answer_lines(outcome.answer, report), soft_wrap=True)
    if report.loops:
        console.print(Text(), text.loop_table(report, every=args.verbose > 0), sep="\n")
    if report.changed:
        console.print(Text(), text.operator_table(report), sep="\n")
    if args.verbose and report.patches:
        console.print(Text(), text.patch_list(report), sep="\n", soft_wrap=True)
    console.print(Text(), Entries([("", fact) for fact in facts]), sep="\n", soft_wrap=True)
    if report.loops_left:
        console.print(Text("ortscan explain tells more about the remaining loops", style="dim"))


@naming_stdout_in_errors()
def show_explanation(args: argparse.Namespace, report: Explanation) -> None:
    """Show the explanation of every loop as text, or with ``--json`` as JSON.

    With ``--report``, also write it as a page.
    """
    if args.report is not None:
        page = Page(
            "explain", Path(name_of(args.subject, args)).name, opening(report.answer, report), cards_of(report, report.answer)
        )
        page.add(report_sections(report, report.drawings))
        page.write(args)
    if args.json:
        print_json(input=name_of(args.subject, args), answer=report.answer.to_dict(), report=report_dict(report))
        return
    console = stdout_console(args.no_color)
    console.print(text.explanation(report, report.answer, every=args.verbose > 0), soft_wrap=True)
    if args.verbose and report.patches:
        console.print(Text(), text.patch_list(report), sep="\n", soft_wrap=True)


@naming_stdout_in_errors()
def show_verification(args: argparse.Namespace, verification: "Verification") -> None:
    """Show the outcome, and with ``-v`` every output and case."""
    names = [name_of(path, args) for path in (args.before, args.after)]
    if args.report is not None:
        page = Page("verify", " and ".join(Path(name).name for name in names), [])
        page.add_verification(verification)
        page.write(args)
    if args.json:
        print_json(before=names[0], after=names[1], verification=verification.to_dict())
        return
    console = stdout_console(args.no_color)
    lines = [*verification_lines(verification), *([ADVICE] if verification.needs_inputs else [])]
    console.print(Entries([("", line) for line in lines]), soft_wrap=True)
    if args.verbose:
        console.print(Text(), _verification_tables(verification), sep="\n")


def _outcome_page(args: argparse.Namespace, outcome: ShownResult) -> Page:
    report = outcome.report
    page = Page("optimize", Path(name_of(args.model, args)).name, opening(outcome.answer, report), cards_of(report))
    page.add_bench(outcome.bench)
    page.add(report_sections(report, outcome.drawings))
    page.add_verification(outcome.verification)
    page.add_sizes(outcome.written)
    return page


def _verification_tables(verification: "Verification") -> RenderableType:
    """Return a table with the worst error of each output, and a table with the outcome of each case."""
    outputs = table("output", "outcome", "worst error", "allowed", "cases", right_aligned=("worst error", "allowed", "cases"))
    for output in verification.outputs:
        numbers = (f"{output.absolute:.2g}", f"{output.allowed:.2g}", str(output.compared))
        outputs.add_row(safe(output.name), _status(output), *numbers)
    cases = table("case", "outcome")
    for case in verification.cases:
        cases.add_row(safe(case.label), _status(case))
    return Group(outputs, Text(), cases)


def _status(entry: "OutputResult | Case") -> Text:
    return safe(f"{entry.status}: {entry.reason}" if entry.reason else entry.status)


@naming_stdout_in_errors()
def show_migration(
    args: argparse.Namespace,
    migration: Migration,
    verification: "Verification | None",
    sizes: WrittenSizes | None,
    drawings: Mapping[str, Drawings],
) -> None:
    """Show what became of the operators and the Scans, a line on the verification and a line on the file."""
    if args.report is not None:
        page = Page("migrate", Path(name_of(args.model, args)).name, [migration_headline(migration), *migration.messages])
        page.add(section("Scans of opset 8", migration_scans(migration, drawings)))
        page.add(section("Operators", migration_operators(migration)))
        page.add_verification(verification)
        page.add_sizes(sizes)
        page.write(args)
    if args.json:
        print_json(
            input=name_of(args.model, args),
            output=written_dict(args, sizes),
            migration=asdict(migration),
            verification=verification.to_dict() if verification is not None else None,
        )
        return
    if args.quiet:
        return
    console = stdout_console(args.no_color)
    console.print(Text(migration_headline(migration)), *(safe(message) for message in migration.messages), sep="\n", soft_wrap=True)
    if migration.conversions:
        console.print(Text(), conversion_table(migration, every=args.verbose > 0), sep="\n")
    if migration.scans:
        console.print(Text(), scan_table(migration), sep="\n", soft_wrap=True)
    facts = [*verification_lines(verification), written_sentence(args, sizes)]
    console.print(Text(), *map(safe, facts), sep="\n", soft_wrap=True)
