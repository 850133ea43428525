"""The changes of operators between opsets: a file a kind of change, with the way up and the way down; ``table.py`` lists them."""

from rewrites.migration.conversions.table import LIFTING, LOWERING

__all__ = ["LIFTING", "LOWERING"]
