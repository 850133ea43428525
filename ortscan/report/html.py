"""Format reports of loops and of migrations as sections of an HTML page, with drawings of the loops."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ortscan.base.markup import name, safe
from ortscan.drawing.picture import Drawings, Picture
from ortscan.drawing.svg import svg_of
from ortscan.page.document import Bar, bars, listed, section, table
from ortscan.report.answer import Answer
from ortscan.report.codes import lookup
from ortscan.report.ratio import gain
from ortscan.report.words import loop_line, operator_changes, scan_outcome, totals
from rewrites.base.plain_text import cut
from rewrites.base.report import LoopReport, NodeReport, Reason, RewriteReport

if TYPE_CHECKING:
    from rewrites.migration import Migration

__all__ = ["cards_of", "migration_operators", "migration_scans", "report_sections"]

_MOST_OPEN, _SEARCHED_FROM = 8, 4
_LONGEST_TEXT = 2000
_WIDEST = 1000
"""A wider drawing starts unscaled in a notebook, whose pages run no script to zoom with."""
_LOOKS = {"removed": "good", "compiled": "good", "reduced": "some", "rewritten": "some", "kept": "bad"}
_KEYS = (
    ("state", "state: from step to step"),
    ("step", "slice of a step"),
    ("heavy", "products"),
    ("native", "recurrent or compiled"),
    ("plain", "arithmetic"),
    ("move", "shapes and moves"),
)


def cards_of(report: RewriteReport, answer: Answer | None = None) -> list[tuple[str, str, str]]:
    """Return the cards at the top of the page, each as (number, label, style).

    One card has the number of loops that are gone or compiled, and another has the number of nodes before and after. If ``answer``
    has a measured gain, the first card has the gain.
    """
    before, after = totals(report)
    fates = {loop.fate for loop in report.loops}
    solved = sum(_LOOKS[loop.fate] == "good" for loop in report.loops)
    look = "good" if solved == len(report.loops) else "some" if fates != {"kept"} else "bad"
    label = " or ".join(["gone"] * ("removed" in fates or "compiled" not in fates) + ["compiled"] * ("compiled" in fates))
    loops = [(f"{solved} of {len(report.loops)}", f"loops {label}", look)] if report.loops else []
    return [*_gain_cards(answer), *loops, (f"{before} → {after}" if before != after else str(before), "nodes", "")]


def _gain_cards(answer: Answer | None) -> list[tuple[str, str, str]]:
    """Return a card with the measured gain, or no card if the gain was not measured."""
    if answer is None or answer.speedup is None:
        return []
    ratio = answer.speedup.ratio
    look = "good" if ratio.is_faster else "bad" if ratio.is_slower else ""
    return [(gain(ratio) if ratio.is_measurable else "no difference", f"measured, {answer.speedup.label}", look)]


def report_sections(report: RewriteReport, drawings: Mapping[str, Drawings]) -> str:
    """Return the sections of the page as HTML.

    The sections show how many operators run in each loop, what became of the loops and recurrent nodes, and the counts of all
    operators. ``drawings`` has the drawings of each loop by its location.
    """
    ordered = sorted(report.loops, key=lambda loop: _LOOKS[loop.fate] == "good")
    search = '<input type="search" placeholder="Search the loops" aria-label="Search the loops">\n'
    loops = "".join(_loop(loop, drawings.get(loop.where), number < _MOST_OPEN) for number, loop in enumerate(ordered))
    head = search if len(ordered) >= _SEARCHED_FROM else ""
    keys = "".join(f'<span><i class="{kind}"></i>{safe(what)}</span>' for kind, what in _KEYS)
    legend = f'<p class="keys">{keys}</p>' if any(drawn.before for drawn in drawings.values()) else ""
    return (
        section("Operators that run", _run_bars(ordered, drawings))
        + section("Loops", head + loops + legend if ordered else "<p>None.</p>")
        + _nodes("Recurrent nodes that onnxruntime does not run", report.nodes)
        + _nodes("Recurrent nodes of both directions on one sequence", report.pairs)
        + _nodes("Recurrent nodes that ortscan's library may run", report.cells)
        + section("Operators", _operators(report))
    )


def _run_bars(loops: Sequence[LoopReport], drawings: Mapping[str, Drawings]) -> str:
    """Return HTML bars that show how many operators run for each loop when the model runs once.

    Each loop has one bar for the original and one for the result. A loop is left out if one of its two counts is unknown, or if
    both counts are equal.
    """
    shown = []
    for loop in loops:
        drawn = drawings.get(loop.where)
        if drawn is None or drawn.runs_before is None or drawn.runs_after is None or drawn.runs_before == drawn.runs_after:
            continue
        look = "good" if drawn.runs_after < drawn.runs_before else "some"
        shown.append(Bar("before", drawn.runs_before, f"{drawn.runs_before:,}", loop.where))
        shown.append(Bar("after", drawn.runs_after, f"{drawn.runs_after:,}", loop.where, look))
    note = '<p class="soft">The count in one run of the model. Operators of a body count once a step.</p>'
    return note + bars(shown[:24]) if shown else ""


def _loop(loop: LoopReport, drawn: Drawings | None, is_open: bool) -> str:
    lines = _history(loop) + [f"<li>Note: {safe(note)}</li>" for note in loop.notes]
    lines += [f"<li>Try: {safe(advice.text)}</li>" for advice in loop.advice]
    labelled = {"Is": loop.is_a, "From": loop.scope, "Cost": loop.cost, "Runs": loop.runs}
    facts = "".join(f"<p>{label}: {safe(fact)}</p>" for label, fact in labelled.items() if fact)
    changes = f'<ul class="did">{"".join(lines)}</ul>' if lines else ""
    codes = " ".join(reason.code for reason in loop.reasons)
    rules = " ".join(fired.rule for fired in loop.fired)
    text = _searched(f"{loop.where} {loop.kind} {loop.fate} {codes} {rules}")
    steps = "" if loop.steps is None else "1 step" if loop.steps == 1 else f"{loop.steps} steps"
    reason = f"<code>{safe(loop.reasons[0].code)}</code>" if loop.reasons else ""
    return (
        f'<details class="loop {loop.fate}" data-text="{text}"{" open" if is_open else ""}><summary><b>{name(loop.where)}</b>'
        f'<span class="badge {_LOOKS[loop.fate]}">{loop.fate}</span>{reason}<span class="soft">{safe(steps)}</span></summary>\n'
        f"<div><p>{safe(loop_line(loop))}</p>{facts}{changes}{_drawing(drawn, loop.where)}</div></details>\n"
    )


def _searched(text: str) -> str:
    return safe(cut(text.lower(), _LONGEST_TEXT))


def _drawing(drawn: Drawings | None, where: str) -> str:
    """Return as HTML the drawings of the loop at ``where`` before and after, side by side."""
    if drawn is None:
        return ""
    parts = [("Before", drawn.before), ("After", drawn.after)]
    sheets = "".join(_sheet(label, picture, where) for label, picture in parts if picture is not None)
    why = f'<div class="soft">{safe(drawn.why)}</div>' if drawn.why else ""
    return f'<div class="drawn">{sheets}{why}</div>'


def _sheet(label: str, picture: Picture, where: str) -> str:
    svg, width = svg_of(picture, f"{label}: {where}")
    look = "sheet whole" if width > _WIDEST else "sheet"
    return f'<div style="flex-grow:{max(200, min(_WIDEST, width)):.0f}"><h4>{label}</h4><div class="{look}">{svg}</div></div>'


def _history(entry: LoopReport | NodeReport) -> list[str]:
    lines = [f"<li>#{fired.number} <b>{safe(fired.rule)}</b>: {safe(fired.what)}</li>" for fired in entry.fired]
    return lines + [_reason(reason) for reason in entry.reasons]


def _reason(reason: Reason) -> str:
    known = lookup(reason.code)
    text = ": ".join(filter(None, [known.meaning.rstrip(".") if known else "", reason.detail]))
    long = f'<p class="soft">{safe(known.text)}</p>' if known else ""
    return f"<li><code>{safe(reason.code)}</code> ({safe(reason.rule)}) {safe(text)}{long}</li>"


def _nodes(title: str, nodes: Sequence[NodeReport]) -> str:
    entries = "".join(
        f'<details class="loop {"kept" if node.reasons else "removed"}" data-text="{_searched(node.where)}" open>'
        f'<summary><b>{name(node.where)}</b></summary><div><ul class="did">{"".join(_history(node))}</ul></div></details>\n'
        for node in nodes
    )
    return section(title, entries)


def _operators(report: RewriteReport) -> str:
    return table(("operator", "before", "after"), operator_changes(report), ("before", "after"), ("all nodes", *totals(report)))


def migration_scans(migration: "Migration", drawings: Mapping[str, Drawings]) -> str:
    """Return as HTML a list of what each Scan became, and drawings of the Scans of the main graph."""
    scans = listed((scan.name, scan_outcome(scan)) for scan in migration.scans)
    drawn = "".join(
        f'<details class="loop rewritten" open><summary><b>{name(where)}</b></summary><div>{_drawing(each, where)}</div></details>'
        for where, each in drawings.items()
    )
    return scans + drawn


def migration_operators(migration: "Migration") -> str:
    """Return an HTML table of what the nodes of each operator became in the migration."""
    rows = [
        (row.op_type, f"{row.before} → {row.after}", row.count, ", ".join(row.written) or "only the version changed")
        for row in migration.conversions
    ]
    return table(("operator", "version", "nodes", "became"), rows, ("nodes",)) if rows else ""
