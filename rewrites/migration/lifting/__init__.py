"""The steps up: one file for each change of an operator that asks for more than a new version number."""

from rewrites.migration.lifting.table import LIFTING

__all__ = ["LIFTING"]
