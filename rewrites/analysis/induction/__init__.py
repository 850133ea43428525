"""Integers as affine expressions of the step number: trip counts, induction variables, rows read and written.

``recurrences`` handles floats and matrices.
"""

__all__: list[str] = []
