"""Sees to it that there is memory for what onnxruntime-extensions copies: where it finds none, it ends the process."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

__all__ = ["room_for_inputs", "room_for_results"]

_NO_MATTER = 1 << 20
_COPIES = 4
"""An input may be cast, put beside others of its type, and copied to numpy; onnxruntime takes memory in advance."""


def room_for_inputs(arguments: Iterable[Any]) -> None:
    """Raise MemoryError where the inputs of a run, among its arguments, cannot be copied as often as may be needed."""
    fed = [value for each in arguments if isinstance(each, Mapping) for value in each.values()]
    _need(_COPIES * sum(map(_size_of, fed)))


def room_for_results(results: Iterable[np.ndarray]) -> None:
    """Raise MemoryError where the results of a call cannot be copied once."""
    _need(sum(array.nbytes for array in results))


def _size_of(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    count = getattr(value, "tensor_size_in_bytes", None)  # of an OrtValue
    return int(count()) if count is not None and value.is_tensor() else 0


def _need(count: int) -> None:
    if count > _NO_MATTER:
        np.empty(count, np.uint8)
