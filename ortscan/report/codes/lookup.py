"""Finds the texts of a reason code."""

import difflib

from ortscan.report.codes import (
    attention,
    cells,
    choices,
    cumulative,
    linear,
    loops,
    native,
    operators,
    python_ops,
    recurrent_nodes,
    scans,
    unknowns,
    unrolling,
)
from ortscan.report.codes.code import Code

__all__ = ["CODES", "lookup", "meaning", "similar"]

_TABLES = (
    loops,
    scans,
    cells,
    cumulative,
    attention,
    linear,
    unrolling,
    recurrent_nodes,
    operators,
    unknowns,
    choices,
    python_ops,
    native,
)
CODES = {entry.code: entry for table in _TABLES for entry in table.TABLE}


def lookup(code: str) -> Code | None:
    """Find a code, in any case; None where no table has it."""
    return CODES.get(code.upper())


def meaning(code: str) -> str:
    """Return the one line on ``code``, or nothing where no table has it."""
    known = lookup(code)
    return known.meaning if known else ""


def similar(code: str) -> list[str]:
    """Return the known codes spelled most like ``code``, the likest first."""
    return difflib.get_close_matches(code.upper(), CODES, n=4, cutoff=0.4)
