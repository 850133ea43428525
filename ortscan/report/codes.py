"""Look up the reason codes that rules return.

The codes are stable, so programs may rely on them. The texts are read from ``docs/reference/reasons.md``. This file has one
entry for each code::

    ### CODE

    The meaning of the code, in one line.

    The implications for the model, and possible remedies, in one line.

A test fails if a rule uses a code without an entry.
"""

import difflib
import re
from importlib.resources import files
from typing import NamedTuple

__all__ = ["CODES", "Code", "lookup", "meaning", "similar"]

_ENTRY = re.compile(r"^### (?P<code>\S+)\n\n(?P<meaning>.+)\n\n(?P<text>.+)$", re.MULTILINE)


class Code(NamedTuple):
    """The entry of a reason code.

    ``meaning`` has one line. ``text`` has the implications for the model and possible remedies.
    """

    code: str
    meaning: str
    text: str


_TEXTS = files("ortscan").joinpath("docs", "reference", "reasons.md").read_text(encoding="utf-8")
CODES = {entry["code"]: Code(**entry.groupdict()) for entry in _ENTRY.finditer(_TEXTS)}


def lookup(code: str) -> Code | None:
    """Return the entry of a code, ignoring case, or None if the code is unknown."""
    return CODES.get(code.upper())


def meaning(code: str) -> str:
    """Return the meaning of ``code`` in one line, or an empty string if it is unknown."""
    known = lookup(code)
    return known.meaning if known else ""


def similar(code: str) -> list[str]:
    """Return up to four known codes that are spelled similarly to ``code``, the most similar first."""
    return difflib.get_close_matches(code.upper(), CODES, n=4, cutoff=0.4)
