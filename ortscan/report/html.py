"""A Report as one HTML page that needs nothing else: no script, no font, no network."""

from collections.abc import Sequence
from html import escape

from ortscan.report.codes import lookup
from ortscan.report.counts import operator_changes, totals
from ortscan.report.words import headline, loop_line
from rewrites.base.plain_text import plain
from rewrites.base.report import LoopReport, NodeReport, Reason, Report

__all__ = ["page"]

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --removed: #2a8a43; --reduced: #b07a00; --kept: #c33; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse } th, td { text-align: left; padding: .2rem .8rem; border-bottom: 1px solid var(--line) }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums } tfoot td { font-weight: bold }
section { border-left: 4px solid var(--line); padding: .1rem 1rem; margin: 1rem 0 }
section.removed, section.planned { border-color: var(--removed) }
section.reduced, section.rewritten { border-color: var(--reduced) }
section.kept { border-color: var(--kept) } section h3 { font-size: 1rem; margin: .4rem 0 } section p, ul { margin: .3rem 0 }
code { font-size: .92em } .long { opacity: .75; margin: .1rem 0 .5rem }
"""


def page(report: Report, title: str, facts: Sequence[str] = ()) -> str:
    """Return the page; ``facts`` are sentences beside the report, such as on verification and on what was written."""
    paragraphs = "".join(f"<p>{_safe(line)}</p>\n" for line in (headline(report), *report.messages, *facts))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>ortscan: {_safe(title)}</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>{_safe(title)}</h1>\n{paragraphs}"
        f"<h2>Operators</h2>\n{_operators(report)}\n"
        f"<h2>Loops</h2>\n{''.join(_loop(loop) for loop in report.loops) or '<p>None.</p>'}\n"
        f"{_nodes(report)}</body></html>\n"
    )


def _operators(report: Report) -> str:
    rows = "".join(_row(*change) for change in operator_changes(report))
    return (
        '<table><thead><tr><th>operator</th><th class="n">before</th><th class="n">after</th></tr></thead>'
        f"<tbody>{rows}</tbody><tfoot>{_row('all nodes', *totals(report))}</tfoot></table>"
    )


def _row(name: str, before: int, after: int) -> str:
    return f'<tr><td>{_safe(name)}</td><td class="n">{before}</td><td class="n">{after}</td></tr>\n'


def _nodes(report: Report) -> str:
    return _some_nodes("Recurrent nodes that onnxruntime does not run", report.nodes) + _some_nodes(
        "Recurrent nodes of both directions on one sequence", report.pairs
    )


def _some_nodes(title: str, nodes: Sequence[NodeReport]) -> str:
    sections = "".join(
        f'<section class="{"kept" if node.reasons else "removed"}"><h3>{_safe(node.where)}</h3>'
        f"<ul>{''.join(_history(node))}</ul></section>\n"
        for node in nodes
    )
    return f"<h2>{title}</h2>\n{sections}" if sections else ""


def _history(entry: LoopReport | NodeReport) -> list[str]:
    lines = [f"<li>#{fired.number} <b>{_safe(fired.rule)}</b>: {_safe(fired.what)}</li>" for fired in entry.fired]
    return lines + [_reason(reason) for reason in entry.reasons]


def _loop(loop: LoopReport) -> str:
    lines = _history(loop)
    lines += [f"<li>Note: {_safe(note)}</li>" for note in loop.notes]
    runs = f"<br>runs: {_safe(loop.runs)}" if loop.runs else ""
    listed = f"<ul>{''.join(lines)}</ul>" if lines else ""
    return f'<section class="{loop.fate}"><h3>{_safe(loop.where)}</h3><p>{_safe(loop_line(loop))}{runs}</p>{listed}</section>\n'


def _reason(reason: Reason) -> str:
    known = lookup(reason.code)
    said = ": ".join(filter(None, [known.meaning if known else "", reason.detail]))
    long = f'<p class="long">{_safe(known.text)}</p>' if known else ""
    return f"<li><code>{_safe(reason.code)}</code> ({_safe(reason.rule)}) {_safe(said)}{long}</li>"


def _safe(text: object) -> str:
    return escape(plain(text))
