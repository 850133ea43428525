"""A Verification in a terminal: every output, and every case that was tried."""

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from ortscan.report.terminal import safe, table

if TYPE_CHECKING:
    from ortscan.verification.result import OutputResult, Verification

__all__ = ["verification_tables"]


def verification_tables(verification: "Verification") -> RenderableType:
    """Show the worst error of each output over all cases, then the outcome of each case."""
    outputs = table("output", "outcome", "worst error", "allowed", "cases", right=("worst error", "allowed", "cases"))
    for output in verification.outputs:
        numbers = (f"{output.absolute:.2g}", f"{output.allowed:.2g}", str(output.compared))
        outputs.add_row(safe(output.name), _outcome(output), *numbers)
    cases = table("case", "outcome")
    for case in verification.cases:
        cases.add_row(safe(case.label), safe(f"{case.status}: {case.reason}" if case.reason else case.status))
    return Group(outputs, Text(), cases)


def _outcome(output: "OutputResult") -> Text:
    return safe(f"{output.status}: {output.reason}" if output.reason else output.status)
