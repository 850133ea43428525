"""What became of a model's operators and opset-8 Scans in another opset, in a terminal of 80 columns or more."""

from rich.console import Group, RenderableType
from rich.text import Text

from ortscan.report.codes import meaning
from ortscan.report.entries import Entries
from ortscan.report.tables import safe, table
from rewrites.base.counted import counted
from rewrites.migration import LiftedScan, Migration

__all__ = ["became", "conversion_table", "migration_headline", "scan_table"]

_FORMS = {
    "one row": "a Scan over the steps of its one row",
    "batched": "one Scan, its body for all rows at once",
    "row by row": "a Scan over the rows around one over the steps",
}


def migration_headline(migration: Migration) -> str:
    """Say in one sentence where the model went."""
    if migration.source == migration.target:
        return f"The model is in opset {migration.source} already."
    rewritten = sum(conversion.count for conversion in migration.conversions if conversion.written)
    ir = f", IR {migration.ir_before} -> {migration.ir_after}" if migration.ir_before != migration.ir_after else ""
    done = [f"{counted(rewritten, 'node')} rewritten", f"{counted(len(migration.scans), 'opset-8 Scan')} lifted"]
    return f"opset {migration.source} -> {migration.target}{ir}: {', '.join(done)}."


def conversion_table(migration: Migration, every: bool = False) -> RenderableType:
    """Show what each operator became; those of which only the version changed are one line unless ``every``."""
    shown = table("operator", "version", "nodes", "became", right=("nodes",), whole=("version",))
    quiet = 0
    for one in migration.conversions:
        if one.written or every:
            became = ", ".join(one.written) or "only the version changed"
            shown.add_row(safe(one.op_type), f"{one.before} -> {one.after}", str(one.count), safe(became))
        else:
            quiet += one.count
    if not quiet:
        return shown
    line = Text(f"{counted(quiet, 'node')} kept as written, in a later version of the operator")
    return Group(shown, line) if shown.row_count else line


def scan_table(migration: Migration) -> RenderableType:
    """Show what each opset-8 Scan became, and why one runs its rows one by one."""
    return Entries((f"Scan {scan.name}", became(scan)) for scan in migration.scans)


def became(scan: LiftedScan) -> str:
    """Say what an opset-8 Scan became."""
    lengths = ", rows ending at their lengths" if scan.lengths else ""
    if scan.reason is None:
        return f"{_FORMS[scan.form]}{lengths}"
    said = ": ".join(filter(None, [meaning(scan.reason.code), scan.reason.detail]))
    return f"{_FORMS[scan.form]}{lengths}; {scan.reason.code}: {said}"
