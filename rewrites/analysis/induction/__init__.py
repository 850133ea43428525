"""Describes integers in loops as affine expressions of the step number.

Examples are trip counts, induction variables and indices of rows. ``rewrites.recurrences`` analyses recurrences of floats and
matrices.
"""

__all__: list[str] = []
