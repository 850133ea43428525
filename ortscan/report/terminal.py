"""Tables and labelled paragraphs that fit the width of a terminal.

Names from a model become rich's ``Text``, so rich does not interpret brackets in them as markup.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

from rewrites.base.plain_text import plain

__all__ = ["Entries", "safe", "table", "wrapped"]

_WORD = re.compile(r"""[(\["]*'[^']*'[^\s']*|\S+""")
_LEAST = 30
"""The minimum width of a paragraph in columns, even in a narrower window."""
_GAP = 2


def wrapped(content: str, width: int) -> Iterator[str]:
    """Yield ``content`` in lines of at most ``width`` columns.

    Words and quoted names are not broken, so a long word can make its line wider.
    """
    line, filled = "", 0
    for word in _WORD.findall(content):
        size = cell_len(word)
        if line and filled + 1 + size > width:
            yield line
            line, filled = "", 0
        line, filled = (f"{line} {word}", filled + 1 + size) if line else (word, size)
    yield line


class Entries:
    """Paragraphs in two columns: labels on the left, and the contents of the paragraphs on the right."""

    def __init__(self, pairs: Iterable[tuple[str, str]], indent: int = 0) -> None:
        self._pairs, self._indent = [(plain(label), plain(content)) for label, content in pairs], indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        column = max((cell_len(label) for label, _ in self._pairs), default=0)
        column += _GAP if column else 0
        width = max(_LEAST, options.max_width - self._indent - column)
        for label, content in self._pairs:
            for number, part in enumerate(wrapped(content, width)):
                line = Text(" " * self._indent)
                shown = "" if number else label
                line.append(shown + " " * (column - cell_len(shown)), style="dim")
                line.append(part)
                line.rstrip()
                yield line


def safe(content: object) -> Text:
    """Return ``content`` as text that rich shows literally, without interpreting markup."""
    return Text(plain(content))


def table(*columns: str, right_aligned: Iterable[str] = (), unbroken: Iterable[str] = (), names: Iterable[str] = ()) -> Table:
    """Return a table without rows.

    Args:
        columns: the titles of all columns.
        right_aligned: the columns that are aligned to the right.
        unbroken: the columns whose texts are short words, which are never broken into lines.
        names: the columns whose texts are truncated at the end if they do not fit.
    """
    result = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        justify: Literal["left", "right"] = "right" if name in right_aligned else "left"
        result.add_column(name, justify=justify, overflow="ellipsis" if name in names else "fold", no_wrap=name in unbroken)
    return result
