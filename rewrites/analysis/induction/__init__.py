"""Integers as affine expressions of the step number: trip counts, induction variables, indices of rows.

``rewrites.recurrences`` analyses recurrences of floats and matrices.
"""

__all__: list[str] = []
