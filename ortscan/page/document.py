"""A whole page, and its content as part of another, such as a notebook's."""

from collections.abc import Sequence

from ortscan.base.markup import safe
from ortscan.page.elements import cards, paragraphs
from ortscan.page.files import digest, script, style

__all__ = ["document", "fragment", "header"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'"


def document(title: str, html: str) -> str:
    """Return a page with the content ``html``. A browser loads nothing for it, and runs no script but its own."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY.format(digest())}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>ortscan: {safe(title)}</title>\n<style>{style()}</style></head>\n"
        f'<body class="ortscan" style="margin:0"><main class="inside">\n{html}</main>\n<script>{script()}</script></body></html>\n'
    )


def fragment(html: str) -> str:
    """Return ``html`` with its style, for a page that others made."""
    return f'<div class="ortscan"><style>{style()}</style><div class="inside">\n{html}</div></div>'


def header(brand: str, title: str, said: Sequence[str], shown: Sequence[tuple[str, str, str]] = ()) -> str:
    """Return the head of a page: what made it, of what, what became of it in sentences, and in ``cards``."""
    first, *rest = [*said, ""][: max(1, len(said))]
    return (
        f'<header><p class="brand">{safe(brand)}</p><h1><bdi>{safe(title)}</bdi></h1>\n'
        f"{paragraphs(filter(None, [first]))}{paragraphs(rest, 'soft')}{cards(shown)}</header>\n"
    )
