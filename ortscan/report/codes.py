"""The stable reason codes that rules answer with. ``docs/reference/reasons.md`` has their texts.

### CODE                  a reason code; a test fails if a rule names one that is not there

Its meaning.              one line

What it says of the model, and what can be done about it.
"""

import difflib
import re
from importlib.resources import files
from typing import NamedTuple

__all__ = ["CODES", "Code", "lookup", "meaning", "similar"]

_ENTRY = re.compile(r"^### (?P<code>\S+)\n\n(?P<meaning>.+)\n\n(?P<text>.+)$", re.MULTILINE)


class Code(NamedTuple):
    """A reason code, its meaning on one line, and what it says about the model and what can be done about it."""

    code: str
    meaning: str
    text: str


_TEXTS = files("ortscan").joinpath("docs", "reference", "reasons.md").read_text(encoding="utf-8")
CODES = {entry["code"]: Code(**entry.groupdict()) for entry in _ENTRY.finditer(_TEXTS)}


def lookup(code: str) -> Code | None:
    """Return the entry of a code in any case, or None if there is none."""
    return CODES.get(code.upper())


def meaning(code: str) -> str:
    """Return the one line on ``code``, or nothing if there is none."""
    known = lookup(code)
    return known.meaning if known else ""


def similar(code: str) -> list[str]:
    """Return the known codes that are spelled most like ``code``, the most similar first."""
    return difflib.get_close_matches(code.upper(), CODES, n=4, cutoff=0.4)
