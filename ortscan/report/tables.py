"""Tables and rows that fit the width they are given; all names go through Text, so none is ever taken for markup."""

from collections.abc import Iterable

from rich import box
from rich.table import Table
from rich.text import Text

from rewrites.base.plain_text import plain

__all__ = ["rows", "safe", "table"]


def safe(content: object) -> Text:
    """Return ``content`` as text to show just so."""
    return Text(plain(content))


def table(*columns: str, right: Iterable[str] = (), whole: Iterable[str] = ()) -> Table:
    """Make an empty table; the columns in ``right`` are aligned there, those in ``whole`` hold short words and never break."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", overflow="fold", no_wrap=name in whole)
    return made


def rows(pairs: Iterable[tuple[str, str]]) -> Table:
    """Show each (label, content) as a paragraph with its label before it."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for label, content in pairs:
        grid.add_row(safe(label), safe(content))
    return grid
