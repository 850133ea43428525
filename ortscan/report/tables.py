"""Tables that fit the width they are given; all names go through Text, so none is ever taken for markup."""

from collections.abc import Iterable
from typing import Literal

from rich import box
from rich.table import Table
from rich.text import Text

from rewrites.base.plain_text import plain

__all__ = ["safe", "table"]


def safe(content: object) -> Text:
    """Return ``content`` as text to show just so."""
    return Text(plain(content))


def table(*columns: str, right: Iterable[str] = (), whole: Iterable[str] = (), names: Iterable[str] = ()) -> Table:
    """Make an empty table; the columns in ``right`` are aligned there, those in ``whole`` hold short words and never break.

    Those in ``names`` are cut at their end where there is no room for them.
    """
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        justify: Literal["left", "right"] = "right" if name in right else "left"
        made.add_column(name, justify=justify, overflow="ellipsis" if name in names else "fold", no_wrap=name in whole)
    return made
