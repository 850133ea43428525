"""Write a self-contained HTML page and its elements.

All text is escaped, except arguments called ``html``, which hold markup.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

from ortscan.base.markup import safe

__all__ = ["Bar", "bars", "document", "fragment", "header", "listed", "paragraphs", "section", "table"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'"


def document(title: str, html: str) -> str:
    """Return a page with the content ``html``.

    The page loads no other files, and its policy allows only its own script.
    """
    script = _file("page.js")
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY.format(digest)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>ortscan: {safe(title)}</title>\n<style>{_file('page.css')}</style></head>\n"
        f'<body class="ortscan" style="margin:0"><main class="inside">\n{html}</main>\n<script>{script}</script></body></html>\n'
    )


def fragment(html: str) -> str:
    """Return ``html`` with its style, to embed in another page such as a notebook."""
    return f'<div class="ortscan"><style>{_file("page.css")}</style><div class="inside">\n{html}</div></div>'


def header(brand: str, title: str, sentences: Sequence[str], cards: Sequence[tuple[str, str, str]] = ()) -> str:
    """Return the head of a page.

    Args:
        brand: the command.
        title: the subject, such as the name of the model.
        sentences: the result in words.
        cards: the figures to highlight, each a tuple (value, label, look).
    """
    first, *rest = [*sentences, ""][: max(1, len(sentences))]
    return (
        f'<header><p class="brand">{safe(brand)}</p><h1><bdi>{safe(title)}</bdi></h1>\n'
        f"{paragraphs(filter(None, [first]))}{paragraphs(rest, 'soft')}{_cards(cards)}</header>\n"
    )


@cache
def _file(name: str) -> str:
    return files("ortscan.page").joinpath(name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Bar:
    """A labelled bar.

    ``of`` is the heading of the group to which the bar belongs. ``look`` is good, some, bad, or empty for a grey bar.
    """

    label: str
    value: float
    text: str
    of: str = ""
    look: str = ""


def bars(shown: Sequence[Bar]) -> str:
    """Return a bar chart. The length of a bar is its value relative to the largest value of its group."""
    most: dict[str, float] = {}
    for bar in shown:
        most[bar.of] = max(most.get(bar.of, 0.0), bar.value)
    parts, group = [], None
    for bar in shown:
        if bar.of and bar.of != group:
            parts.append(f'<div class="of">{safe(bar.of)}</div>')
        group = bar.of
        width = 100 * bar.value / most[bar.of] if most[bar.of] > 0 else 0.0
        look = f' class="{bar.look}"' if bar.look else ""
        parts.append(f'<span>{safe(bar.label)}</span><i{look} style="width:{width:.1f}%"></i><span>{safe(bar.text)}</span>')
    return f'<div class="bars">{"".join(parts)}</div>' if parts else ""


def _cards(cards: Iterable[tuple[str, str, str]]) -> str:
    items = "".join(f'<li><b class="{look}">{safe(value)}</b><span>{safe(label)}</span></li>' for value, label, look in cards)
    return f'<ul class="cards">{items}</ul>' if items else ""


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[str] = (), foot: Sequence[object] | None = None
) -> str:
    """Return a table.

    Args:
        columns: the heads of the columns.
        rows: the cells of each row.
        right: the columns that are aligned to the right.
        foot: the cells of the last row, such as sums, or None for no such row.
    """
    looks = [' class="r"' if column in right else "" for column in columns]

    def row(cells: Sequence[object], tag: str = "td") -> str:
        row_cells = (f"<{tag}{look}>{safe(cell)}</{tag}>" for look, cell in zip(looks, cells, strict=True))
        return f"<tr>{''.join(row_cells)}</tr>"

    last = f"<tfoot>{row(foot)}</tfoot>" if foot is not None else ""
    body = "\n".join(map(row, rows))
    return f'<div class="wide"><table><thead>{row(columns, "th")}</thead><tbody>{body}</tbody>{last}</table></div>'


def section(title: str, html: str) -> str:
    """Return ``html`` under a title, or an empty string if ``html`` is empty."""
    return f"<section><h2>{safe(title)}</h2>\n{html}</section>\n" if html else ""


def paragraphs(lines: Iterable[str], look: str = "") -> str:
    """Return a paragraph for each line."""
    return "".join(f'<p class="{look}">{safe(line)}</p>\n' if look else f"<p>{safe(line)}</p>\n" for line in lines)


def listed(facts: Iterable[tuple[str, object]]) -> str:
    """Return labels and values as a table without a head."""
    rows = "".join(f'<tr><td class="soft">{safe(label)}</td><td>{safe(fact)}</td></tr>' for label, fact in facts)
    return f'<div class="wide"><table><tbody>{rows}</tbody></table></div>' if rows else ""
