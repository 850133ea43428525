"""How results reach onnxruntime-extensions: as arrays, not as lists of Python numbers.

After an op has returned, the library takes ``shape`` of each result and ``flatten().tolist()``, and copies from what that gives.
For an array this makes a list of Python objects, which costs about 64 ns an element and loses the type. What is given here
answers ``tolist()`` with the array itself, which is copied as it is. Strings do travel as lists.
"""

import numpy as np

__all__ = ["Carried"]


class Carried:
    """A result as the library takes it; ``array`` is contiguous and of the declared type."""

    __slots__ = ("_array", "shape")

    def __init__(self, array: np.ndarray) -> None:
        self.shape = array.shape
        self._array = array

    def flatten(self) -> "Carried":
        """Give itself."""
        return self

    def tolist(self) -> object:
        """Give what the library copies the values from."""
        return self._array.reshape(-1).tolist() if self._array.dtype == object else self._array
