"""Outputs without elements, of which onnxruntime may have guessed the sizes."""

from typing import Any

import numpy as np

__all__ = ["both_empty", "is_empty"]


def is_empty(value: Any) -> bool:
    """Whether an output is an array without elements."""
    return isinstance(value, np.ndarray) and value.size == 0


def both_empty(old: Any, new: Any) -> bool:
    """Whether two arrays of one type have no elements, and other sizes."""
    arrays = isinstance(old, np.ndarray) and isinstance(new, np.ndarray)
    return arrays and old.size == new.size == 0 and old.dtype == new.dtype and old.shape != new.shape
