"""Integers as affine expressions of the step number: trip counts, induction variables, rows read and written.

Floats, and matrices, are ``recurrence``'s.
"""

__all__: list[str] = []
