"""The numpy types of ONNX element types."""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import onnx

__all__ = ["dtype_of", "largest_number", "numpy_type", "rounding"]


def numpy_type(elem_type: int) -> np.dtype[Any]:
    """Return the numpy type of an ONNX element type. Strings are objects."""
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(elem_type))


def dtype_of(value: Any) -> np.dtype[Any]:
    """Return the element type of an array, or of the first array in a sequence or map.

    Return float32 if ``value`` has no array.
    """
    while isinstance(value, list | Mapping):
        items = list(value.values()) if isinstance(value, Mapping) else value
        value = items[0] if items else None
    return np.asarray(value).dtype if isinstance(value, np.ndarray | np.generic) else np.dtype(np.float32)


def rounding(dtype: np.dtype[Any]) -> float:
    """Return the distance from 1 to the next larger number of a float type."""
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]


def largest_number(dtype: np.dtype[Any]) -> float:
    """Return the largest finite number of a float type."""
    return float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
