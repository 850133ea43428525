"""What ``migrate`` puts on stdout."""

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from ortscan.cli.console import stdout_console
from ortscan.cli.page import Page
from ortscan.cli.streams import printing
from ortscan.cli.written import Sizes, print_json, verified, written
from ortscan.drawing.picture import Drawings
from ortscan.page.document import section
from ortscan.report.html import migration_operators, migration_scans
from ortscan.report.terminal import safe
from ortscan.report.text import conversion_table, scan_table
from ortscan.report.words import migration_headline
from rewrites.migration import Migration

if TYPE_CHECKING:
    from ortscan.verification.result import Verification

__all__ = ["show_migration"]


@printing()
def show_migration(
    args: argparse.Namespace,
    migration: Migration,
    verification: "Verification | None",
    sizes: Sizes | None,
    drawings: Mapping[str, Drawings],
) -> None:
    """Show what became of the operators and the Scans, a line on the verification and one on the file."""
    if args.report is not None:
        page = Page("migrate", Path(args.model).name, [migration_headline(migration), *migration.messages])
        page.add(section("Scans of opset 8", migration_scans(migration, drawings)))
        page.add(section("Operators", migration_operators(migration)))
        page.add_verification(verification)
        page.add_sizes(sizes)
        page.write(args)
    if args.json:
        print_json(
            input=args.model,
            output=asdict(sizes) if sizes else None,
            migration=asdict(migration),
            verification=verification.to_dict() if verification is not None else None,
        )
        return
    if args.quiet:
        return
    console = stdout_console(args.no_color)
    console.print(Text(migration_headline(migration)), *(safe(message) for message in migration.messages), sep="\n")
    if migration.conversions:
        console.print(Text(), conversion_table(migration, every=args.verbose > 0), sep="\n")
    if migration.scans:
        console.print(Text(), scan_table(migration), sep="\n", soft_wrap=True)
    console.print(Text(), safe(verified(verification)), safe(written(args, sizes)), sep="\n")
