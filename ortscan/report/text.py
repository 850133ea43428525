"""A Report in a terminal of 80 columns or more. All names go through Text, so none is ever taken for markup."""

from collections.abc import Iterable

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ortscan.report.codes import Code, meaning
from ortscan.report.counts import operator_changes, totals
from ortscan.report.plain import plain
from ortscan.report.words import headline, loop_line
from rewrites.report import Fired, LoopReport, Report

__all__ = ["code_text", "explanation", "loop_table", "operator_table", "patch_list"]

_STYLES = {"removed": "green", "reduced": "yellow", "kept": "red"}
_MOST_LOOPS = 20


def operator_table(report: Report) -> RenderableType:
    """Show the operators whose count changed, and the total."""
    table = _table(("operator", "left"), ("before", "right"), ("after", "right"))
    for name, before, after in operator_changes(report):
        table.add_row(_text(name), str(before), str(after))
    before, after = totals(report)
    table.add_row("all nodes", str(before), str(after), style="bold")
    return table


def loop_table(report: Report, every: bool = False) -> RenderableType:
    """Show a line for each loop, those left first; of many loops only the first few unless ``every``."""
    loops = sorted(report.loops, key=lambda loop: loop.fate == "removed")
    shown = loops if every else loops[:_MOST_LOOPS]
    table = _table(("loop", "left"), ("kind", "left"), ("steps", "right"), ("nodes", "right"), ("fate", "left"), ("reason", "left"))
    for loop in shown:
        table.add_row(
            _text(loop.where),
            _text(loop.kind),
            "?" if loop.steps is None else _text(loop.steps),
            f"{loop.nodes_before} -> {loop.nodes_after}",
            _fate(loop),
            _text(loop.reasons[0].code if loop.reasons else ""),
        )
    more = len(loops) - len(shown)
    return Group(table, Text(f"... and {more} more")) if more else table


def patch_list(report: Report) -> RenderableType:
    """Show every change in the order it was made."""
    return _rows((f"#{fired.number}", f"{fired.rule} on {fired.loop}: {fired.what}") for fired in report.patches)


def explanation(report: Report) -> RenderableType:
    """Show what became of every loop, what was done to it, and why the rest of it stays."""
    parts: list[RenderableType] = [Text(headline(report))]
    parts += [Text(plain(message)) for message in report.messages]
    for loop in report.loops:
        parts += [Text(), Text(plain(loop.where), style=f"bold {_STYLES[loop.fate]}"), Padding(_loop(loop), (0, 0, 0, 2))]
    return Group(*parts)


def code_text(code: Code) -> RenderableType:
    """Show a reason code with its long text."""
    return Group(Text(code.code, style="bold"), Text(code.meaning), Text(), Text(code.text))


def _loop(loop: LoopReport) -> RenderableType:
    rows = [("did", _did(fired)) for fired in loop.fired]
    for reason in loop.reasons:
        rows.append(("why", f"{reason.code} ({reason.rule}) {meaning(reason.code)}".rstrip()))
        if reason.detail:
            rows.append(("", reason.detail))
    rows += [("note", note) for note in loop.notes]
    return Group(Text(plain(loop_line(loop))), _rows(rows))


def _did(fired: Fired) -> str:
    return f"#{fired.number} {fired.rule}: {fired.what}"


def _fate(loop: LoopReport) -> Text:
    return Text(loop.fate, style=_STYLES[loop.fate])


def _rows(rows: Iterable[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for label, content in rows:
        grid.add_row(label, _text(content))
    return grid


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "right" else "left", overflow="fold")
    return table


def _text(content: object) -> Text:
    return Text(plain(content))
