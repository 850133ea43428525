"""Lengths of rows that chance would seldom draw: 0 in all rows, the first or the last one; all steps in each row; fewer in each."""

import numpy as np

from ortscan.verification.values.roles import Role

__all__ = ["ROW_KINDS", "counts_steps", "row_lengths", "takes_row_kind"]

_EMPTY_ROWS = ("no rows but empty ones", "an empty first row", "an empty last row")
ROW_KINDS = (*_EMPTY_ROWS, "full rows", "short rows")
"""The kinds of values that lengths of rows take, and nothing else does."""


def counts_steps(role: Role | None) -> bool:
    """Whether an input says how many steps each row has."""
    return role is not None and role.positive and bool(role.highs) and not role.ranges


def takes_row_kind(role: Role | None, kind: str) -> bool:
    """Whether an input is to have lengths of the kind ``kind``; a length of 0 only where onnxruntime takes that."""
    return kind in ROW_KINDS and role is not None and (role.lengths if kind in _EMPTY_ROWS else counts_steps(role))


def row_lengths(values: np.ndarray, kind: str, most: int, random: np.random.Generator) -> np.ndarray:
    """Return ``values``, lengths from 1 to ``most``, changed to be of ``kind``."""
    first, last = (np.arange(values.size).reshape(values.shape) == place for place in (0, values.size - 1))
    match kind:
        case "no rows but empty ones":
            return np.zeros_like(values)
        case "an empty first row":
            return np.where(first, 0, values)
        case "an empty last row":
            return np.where(last, 0, values)
        case "full rows":
            return np.full_like(values, most)
    return np.asarray(random.integers(1, max(1, most - 1), values.shape, endpoint=True), values.dtype)
