"""What ``migrate`` puts on stdout."""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from ortscan.cli.console import stdout_console
from ortscan.cli.streams import printing
from ortscan.cli.written import Sizes, print_json, verified, written
from ortscan.report.migration_text import conversion_table, migration_headline, scan_table
from ortscan.report.tables import safe
from rewrites.migration import Migration

if TYPE_CHECKING:
    from ortscan.verification.result import Verification

__all__ = ["show_migration"]


@printing()
def show_migration(
    args: argparse.Namespace, migration: Migration, verification: "Verification | None", sizes: Sizes | None
) -> None:
    """Show what became of the operators and the Scans, a line on the verification and one on the file."""
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
        console.print(Text(), scan_table(migration), sep="\n")
    console.print(Text(), safe(verified(verification)), safe(written(args, sizes)), sep="\n")
