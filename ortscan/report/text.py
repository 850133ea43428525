"""Format reports of loops and of migrations for a terminal of at least 80 columns."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ortscan.report.answer import Answer, opening
from ortscan.report.codes import Code, meaning
from ortscan.report.terminal import Entries, safe, table
from ortscan.report.words import loop_line, operator_changes, scan_outcome, totals
from rewrites.base.plain_text import counted, plain
from rewrites.base.report import Fate, Fired, LoopReport, Reason, RewriteReport
from rewrites.migration import Migration
from rewrites.registry import RULES

__all__ = [
    "answer_lines",
    "code_text",
    "conversion_table",
    "explanation",
    "loop_table",
    "operator_table",
    "patch_list",
    "scan_table",
]

_STYLES = {"removed": "green", "compiled": "green", "reduced": "yellow", "rewritten": "yellow", "kept": "red"}
_LOOKS = {"good": "bold green", "some": "bold yellow", "bad": "bold red"}
_MOST_LOOPS = 20
_PREPARING = frozenset(
    rule.name
    for rule in RULES
    if rule.phase in ("cleanup", "loop_form", "scan_form", "tidy") and rule.name not in ("constant-states", "pairwise-distance")
)
"""Rules whose changes only prepare other changes."""
_WIDEST_CODE = 24


def answer_lines(answer: Answer, report: RewriteReport) -> RenderableType:
    """Return the answer as a coloured line, followed by lines on recurrent nodes and on the whole model."""
    line, *others = opening(answer, report)
    return Group(Text(plain(line), style=_LOOKS[answer.look]), Entries(("", other) for other in others))


def operator_table(report: RewriteReport) -> RenderableType:
    """Return a table with the operators whose count changed, and their counts before and after.

    The last line counts all nodes.
    """
    shown = table("operator", "before", "after", right_aligned=("before", "after"))
    for name, before, after in operator_changes(report):
        shown.add_row(safe(name), str(before), str(after))
    before, after = totals(report)
    shown.add_row("all nodes", str(before), str(after), style="bold")
    return shown


def loop_table(report: RewriteReport, every: bool = False) -> RenderableType:
    """Return a table with a line for each loop. The remaining loops come first.

    If ``every`` is False, the table has at most ``_MOST_LOOPS`` loops.
    """
    loops = sorted(report.loops, key=lambda loop: loop.fate == "removed")
    listed = loops if every else loops[:_MOST_LOOPS]
    reasons = [loop.reasons[0].code if loop.reasons else "" for loop in listed]
    unbroken = ["kind", "nodes", "fate", *(["reason"] if max(map(len, reasons), default=0) <= _WIDEST_CODE else [])]
    shown = table(
        "loop", "kind", "steps", "nodes", "fate", "reason", right_aligned=("steps", "nodes"), unbroken=unbroken, names=("loop",)
    )
    for loop, reason in zip(listed, reasons, strict=True):
        steps = "?" if loop.steps is None else loop.steps
        nodes = f"{loop.nodes_before} -> {loop.nodes_after}"
        fate = Text(loop.fate, style=_STYLES[loop.fate])
        shown.add_row(safe(loop.where), safe(loop.kind), safe(steps), nodes, fate, safe(reason))
    more = len(loops) - len(listed)
    return Group(shown, Text(f"... and {more} more")) if more else shown


def patch_list(report: RewriteReport) -> RenderableType:
    """Return a list of all changes, in the order in which they were made.

    The changes of loops and nodes come first, then those of the whole model.
    """
    lines = [(f"#{fired.number}", f"{fired.rule} on {fired.loop}: {fired.what}") for fired in report.patches]
    return Entries(lines + [(f"*{fired.number}", f"{fired.rule} on {fired.loop}: {fired.what}") for fired in report.changes])


def explanation(report: RewriteReport, answer: Answer, every: bool = True) -> RenderableType:
    """Return the answer, and an explanation of each loop and recurrent node.

    Each explanation says what became of the loop or node, which changes were made, why the loop or node remains, and what the user
    can do. Some changes only prepare other changes. They are listed only if ``every`` is True.
    """
    parts: list[RenderableType] = [answer_lines(answer, report)]
    for loop in report.loops:
        where = f"{loop.where}, from {loop.scope}" if loop.scope else loop.where
        parts += [Text(), _heading(where, loop.fate), Entries(_loop(loop, every), 2)]
    for node in (*report.nodes, *report.pairs, *report.cells):
        heading = _heading(node.where, "kept" if node.reasons else "removed")
        parts += [Text(), heading, Entries(_change_lines(node.fired) + _reason_lines(node.reasons), 2)]
    return Group(*parts)


def _heading(where: str, fate: Fate) -> Text:
    return Text(plain(where), style=f"bold {_STYLES[fate]}")


def code_text(code: Code) -> RenderableType:
    """Return a text with a reason code, its meaning and its long explanation."""
    return Group(Text(code.code, style="bold"), Text(code.meaning), Text(), Text(code.text))


def _loop(loop: LoopReport, every: bool) -> list[tuple[str, str]]:
    telling = [fired for fired in loop.fired if every or fired.rule not in _PREPARING]
    besides = len(loop.fired) - len(telling)
    return [
        *([("is", loop.is_a)] if loop.is_a else []),
        ("was", loop_line(loop)),
        *([("cost", loop.cost)] if loop.cost else []),
        *([("runs", loop.runs)] if loop.runs else []),
        *_change_lines(telling),
        *([("did", f"{counted(besides, 'change')} that only prepared others; -v lists them")] if besides else []),
        *_reason_lines(loop.reasons),
        *[("note", note) for note in loop.notes if every],
        *[("try", advice.text) for advice in loop.advice],
    ]


def _change_lines(changes: Sequence[Fired]) -> list[tuple[str, str]]:
    return [("did", f"#{fired.number} {fired.rule}: {fired.what}") for fired in changes]


def _reason_lines(reasons: Sequence[Reason]) -> list[tuple[str, str]]:
    lines = []
    for reason in reasons:
        lines.append(("why", f"{reason.code} ({reason.rule}) {meaning(reason.code)}".rstrip()))
        if reason.detail:
            lines.append(("", reason.detail))
    return lines


def conversion_table(migration: Migration, every: bool = False) -> RenderableType:
    """Return a table that shows for each operator what its nodes became in the migration.

    If ``every`` is False, the nodes for which only the version of the operator changed are counted in one line.
    """
    shown = table("operator", "version", "nodes", "became", right_aligned=("nodes",), unbroken=("version",))
    quiet = 0
    for conversion in migration.conversions:
        if conversion.written or every:
            written = ", ".join(conversion.written) or "only the version changed"
            shown.add_row(
                safe(conversion.op_type), f"{conversion.before} -> {conversion.after}", str(conversion.count), safe(written)
            )
        else:
            quiet += conversion.count
    if not quiet:
        return shown
    line = Text(f"{counted(quiet, 'node')} changed only in the version of the operator")
    return Group(shown, line) if shown.row_count else line


def scan_table(migration: Migration) -> RenderableType:
    """Return a list of what each Scan of opset 8 became.

    If the new Scan runs the rows of the batch one by one, the list says why.
    """
    return Entries((f"Scan {scan.name}", scan_outcome(scan)) for scan in migration.scans)
