"""Looking up what a stable reason code means."""

import difflib

from ortscan.report.code_table import TABLE, Code

__all__ = ["CODES", "Code", "lookup", "meaning", "similar"]

CODES = {entry.code: entry for entry in TABLE}


def lookup(code: str) -> Code | None:
    """Find a code, in any case; None where the table lacks it, as for the codes of rules from elsewhere."""
    return CODES.get(code.upper())


def meaning(code: str) -> str:
    """Give the one line on ``code``, or nothing where the table lacks it."""
    known = lookup(code)
    return known.meaning if known else ""


def similar(code: str) -> list[str]:
    """Give the known codes spelled most like ``code``."""
    return difflib.get_close_matches(code.upper(), CODES, n=4, cutoff=0.4)
