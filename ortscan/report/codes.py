"""The stable reason codes that rules return. Their texts are in ``docs/reference/reasons.md``::

### CODE              a reason code. A test fails if a rule uses a code without an entry

Its meaning.          one line

Its implications for the model, and possible remedies.
"""

import difflib
import re
from importlib.resources import files
from typing import NamedTuple

__all__ = ["CODES", "Code", "lookup", "meaning", "similar"]

_ENTRY = re.compile(r"^### (?P<code>\S+)\n\n(?P<meaning>.+)\n\n(?P<text>.+)$", re.MULTILINE)


class Code(NamedTuple):
    """A reason code, its meaning in one line, its implications for the model and possible remedies."""

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
    """Return the known codes with the most similar spelling, the most similar first."""
    return difflib.get_close_matches(code.upper(), CODES, n=4, cutoff=0.4)
