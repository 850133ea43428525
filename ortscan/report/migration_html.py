"""What became of a model's operators and opset-8 Scans in another opset, as sections of an HTML page."""

from collections.abc import Mapping

from ortscan.base.markup import name
from ortscan.drawing.picture import Drawings
from ortscan.page.elements import listed, table
from ortscan.report.html import drawing
from ortscan.report.migration_text import became
from rewrites.migration import Migration

__all__ = ["migration_operators", "migration_scans"]


def migration_scans(migration: Migration, drawings: Mapping[str, Drawings]) -> str:
    """Return what each Scan became, and drawings of those of the main graph."""
    scans = listed((scan.name, became(scan)) for scan in migration.scans)
    drawn = "".join(
        f'<details class="loop rewritten" open><summary><b>{name(where)}</b></summary><div>{drawing(each, where)}</div></details>'
        for where, each in drawings.items()
    )
    return scans + drawn


def migration_operators(migration: Migration) -> str:
    """Return a table of what each operator became."""
    rows = [
        (one.op_type, f"{one.before} → {one.after}", one.count, ", ".join(one.written) or "only the version changed")
        for one in migration.conversions
    ]
    return table(("operator", "version", "nodes", "became"), rows, ("nodes",)) if rows else ""
