"""What the stable reason codes mean: rules answer with a code, its texts are here, one table for each kind of reason.

A code that a rule names and no table has fails a test.
"""

from ortscan.report.codes.code import Code
from ortscan.report.codes.lookup import CODES, lookup, meaning, similar

__all__ = ["CODES", "Code", "lookup", "meaning", "similar"]
