"""The operators a run added or took away."""

from rewrites.base.report import Report

__all__ = ["OperatorChange", "operator_changes", "totals"]

OperatorChange = tuple[str, int, int]


def operator_changes(report: Report) -> list[OperatorChange]:
    """List (operator, before, after) where the two differ, the largest difference first."""
    before, after = report.operators_before, report.operators_after
    changes = [(name, before[name], after[name]) for name in {*before, *after} if before[name] != after[name]]
    return sorted(changes, key=lambda change: (-abs(change[2] - change[1]), change[0]))


def totals(report: Report) -> tuple[int, int]:
    """Count all nodes before and after."""
    return report.operators_before.total(), report.operators_after.total()
