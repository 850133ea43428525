"""Integers as expressions of the step number: trip counts, induction variables, rows read and written."""

__all__: list[str] = []
