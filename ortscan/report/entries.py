"""Paragraphs with labels: broken between words only, never within a quoted name, and not at all where nobody has a window."""

import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.text import Text

from rewrites.base.plain_text import plain

__all__ = ["Entries", "wrapped"]

_WORD = re.compile(r"""[(\["]*'[^']*'[^\s']*|\S+""")
_LEAST = 30
"""Columns of a paragraph, however narrow the window."""
_GAP = 2


def wrapped(content: str, width: int) -> Iterator[str]:
    """Break ``content`` into lines of up to ``width`` columns; a word that is longer has one of its own."""
    line, taken = "", 0
    for word in _WORD.findall(content):
        size = cell_len(word)
        if line and taken + 1 + size > width:
            yield line
            line, taken = "", 0
        line, taken = (f"{line} {word}", taken + 1 + size) if line else (word, size)
    yield line


class Entries:
    """Each (label, content) as a paragraph with its label before it."""

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
