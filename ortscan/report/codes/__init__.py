"""What the stable reason codes mean. Rules give the codes; the texts are here, one table per kind of reason."""

from ortscan.report.codes.code import Code
from ortscan.report.codes.lookup import CODES, lookup, meaning, similar

__all__ = ["CODES", "Code", "lookup", "meaning", "similar"]
