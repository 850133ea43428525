"""A Report in a terminal of 80 columns or more."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ortscan.report.codes import Code, meaning
from ortscan.report.counts import operator_changes, totals
from ortscan.report.tables import rows, safe, table
from ortscan.report.words import headline, loop_line
from rewrites.base.plain_text import plain
from rewrites.base.report import Fired, LoopReport, Reason, Report

__all__ = ["code_text", "explanation", "loop_table", "operator_table", "patch_list"]

_STYLES = {"removed": "green", "planned": "green", "reduced": "yellow", "rewritten": "yellow", "kept": "red"}
_MOST_LOOPS = 20
_WIDEST_CODE = 24


def operator_table(report: Report) -> RenderableType:
    """Show the operators whose count changed, and the total."""
    shown = table("operator", "before", "after", right=("before", "after"))
    for name, before, after in operator_changes(report):
        shown.add_row(safe(name), str(before), str(after))
    before, after = totals(report)
    shown.add_row("all nodes", str(before), str(after), style="bold")
    return shown


def loop_table(report: Report, every: bool = False) -> RenderableType:
    """Show a line for each loop, those left first; of many loops only the first few unless ``every``."""
    loops = sorted(report.loops, key=lambda loop: loop.fate == "removed")
    listed = loops if every else loops[:_MOST_LOOPS]
    reasons = [loop.reasons[0].code if loop.reasons else "" for loop in listed]
    whole = ["kind", "nodes", "fate", *(["reason"] if max(map(len, reasons), default=0) <= _WIDEST_CODE else [])]
    shown = table("loop", "kind", "steps", "nodes", "fate", "reason", right=("steps", "nodes"), whole=whole)
    for loop, reason in zip(listed, reasons, strict=True):
        steps = "?" if loop.steps is None else loop.steps
        nodes = f"{loop.nodes_before} -> {loop.nodes_after}"
        fate = Text(loop.fate, style=_STYLES[loop.fate])
        shown.add_row(safe(loop.where), safe(loop.kind), safe(steps), nodes, fate, safe(reason))
    more = len(loops) - len(listed)
    return Group(shown, Text(f"... and {more} more")) if more else shown


def patch_list(report: Report) -> RenderableType:
    """Show every change in the order it was made."""
    lines = [(f"#{fired.number}", f"{fired.rule} on {fired.loop}: {fired.what}") for fired in report.patches]
    return rows(lines + [(f"*{fired.number}", f"{fired.rule} on {fired.loop}: {fired.what}") for fired in report.changes])


def explanation(report: Report) -> RenderableType:
    """Show what became of every loop and recurrent node, what was done to it, and why the rest of it stays."""
    parts: list[RenderableType] = [Text(headline(report)), *(safe(message) for message in report.messages)]
    for loop in report.loops:
        heading = Text(plain(loop.where), style=f"bold {_STYLES[loop.fate]}")
        parts += [Text(), heading, Padding(_loop(loop), (0, 0, 0, 2))]
    for node in (*report.nodes, *report.pairs):
        heading = Text(plain(node.where), style=f"bold {_STYLES['kept' if node.reasons else 'removed']}")
        parts += [Text(), heading, Padding(rows(_did(node.fired) + _why(node.reasons)), (0, 0, 0, 2))]
    return Group(*parts)


def code_text(code: Code) -> RenderableType:
    """Show a reason code with its long text."""
    return Group(Text(code.code, style="bold"), Text(code.meaning), Text(), Text(code.text))


def _loop(loop: LoopReport) -> RenderableType:
    notes = [("note", note) for note in loop.notes]
    runs = [("runs", loop.runs)] if loop.runs else []
    return Group(safe(loop_line(loop)), rows(runs + _did(loop.fired) + _why(loop.reasons) + notes))


def _did(changes: Sequence[Fired]) -> list[tuple[str, str]]:
    return [("did", f"#{fired.number} {fired.rule}: {fired.what}") for fired in changes]


def _why(reasons: Sequence[Reason]) -> list[tuple[str, str]]:
    lines = []
    for reason in reasons:
        lines.append(("why", f"{reason.code} ({reason.rule}) {meaning(reason.code)}".rstrip()))
        if reason.detail:
            lines.append(("", reason.detail))
    return lines
