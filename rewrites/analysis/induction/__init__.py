"""Integers as affine expressions of the step number: trip counts, induction variables, indices of rows.

Recurrences of floats and matrices are read in ``rewrites.recurrences``.
"""

__all__: list[str] = []
