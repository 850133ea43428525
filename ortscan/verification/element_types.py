"""ONNX element types as numpy has them."""

from typing import Any

import numpy as np
import onnx

__all__ = ["numpy_type"]


def numpy_type(elem_type: int) -> np.dtype[Any]:
    """The numpy type of an ONNX element type; strings are objects."""
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(elem_type))
