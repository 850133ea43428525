"""The elements of a page: cards, tables, bars, sections. Text is escaped here; arguments called ``html`` hold markup already."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ortscan.base.markup import safe

__all__ = ["Bar", "bars", "cards", "listed", "paragraphs", "section", "table"]


@dataclass(frozen=True)
class Bar:
    """``of``: what it belongs to, said once above all bars of it. ``look``: good, some, bad, or nothing for one in grey."""

    label: str
    value: float
    text: str
    of: str = ""
    look: str = ""


def bars(given: Sequence[Bar]) -> str:
    """Return bars, each as long as its value beside the largest of those that belong together."""
    most: dict[str, float] = {}
    for bar in given:
        most[bar.of] = max(most.get(bar.of, 0.0), bar.value)
    parts, said = [], None
    for bar in given:
        if bar.of and bar.of != said:
            parts.append(f'<div class="of">{safe(bar.of)}</div>')
        said = bar.of
        width = 100 * bar.value / most[bar.of] if most[bar.of] > 0 else 0.0
        look = f' class="{bar.look}"' if bar.look else ""
        parts.append(f'<span>{safe(bar.label)}</span><i{look} style="width:{width:.1f}%"></i><span>{safe(bar.text)}</span>')
    return f'<div class="bars">{"".join(parts)}</div>' if parts else ""


def cards(given: Iterable[tuple[str, str, str]]) -> str:
    """Return small cards: each a value, what it is, and its look."""
    made = "".join(f'<li><b class="{look}">{safe(value)}</b><span>{safe(what)}</span></li>' for value, what, look in given)
    return f'<ul class="cards">{made}</ul>' if made else ""


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[str] = (), foot: Sequence[object] | None = None
) -> str:
    """Return a table; the columns in ``right`` are aligned there."""
    looks = [' class="r"' if column in right else "" for column in columns]

    def row(cells: Sequence[object], tag: str = "td") -> str:
        said = (f"<{tag}{look}>{safe(cell)}</{tag}>" for look, cell in zip(looks, cells, strict=True))
        return f"<tr>{''.join(said)}</tr>"

    last = f"<tfoot>{row(foot)}</tfoot>" if foot is not None else ""
    body = "\n".join(map(row, rows))
    return f'<div class="wide"><table><thead>{row(columns, "th")}</thead><tbody>{body}</tbody>{last}</table></div>'


def section(title: str, html: str) -> str:
    """Return what is in ``html`` under a title; nothing where it is empty."""
    return f"<section><h2>{safe(title)}</h2>\n{html}</section>\n" if html else ""


def paragraphs(lines: Iterable[str], look: str = "") -> str:
    """Return a paragraph for each line."""
    return "".join(f'<p class="{look}">{safe(line)}</p>\n' if look else f"<p>{safe(line)}</p>\n" for line in lines)


def listed(facts: Iterable[tuple[str, object]]) -> str:
    """Return a table of two columns without a head: what something is, and it."""
    rows = "".join(f'<tr><td class="soft">{safe(label)}</td><td>{safe(fact)}</td></tr>' for label, fact in facts)
    return f'<div class="wide"><table><tbody>{rows}</tbody></table></div>' if rows else ""
