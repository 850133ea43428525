"""The tolerances for the floats of an output.

Each element has a scale, and may differ by

    atol + rtol * scale

Adding the same numbers in another order may cause an error of this size. In a matrix, the scale of an element is the largest
magnitude in its row or in its column, whichever is smaller:

    |y|  =  1000  0.1                       1000  0.3
            2000  0.2        scales   =     2000  0.3         an error of 0.01 is small on the left, and large on the right
            1500  0.3                       1500  0.3

A tensor of any rank has a limit for each axis: the largest magnitude among all elements with the same index on this axis. The
scale is the smallest of these limits.

If the output had the same shape in all cases, the scale has a further limit from the fourth case on. For example, suppose that an
element never exceeded 1 % of the largest element of its case. Then its scale is at most 1 % of the largest element of the current
case.

The default of ``rtol`` is a multiple of the rounding error of the coarsest float type that the output is computed with (about 1000
roundings of float32, or 10 of float16). The default of ``atol`` is smaller for outputs that never exceed 1.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ortscan.ort.element_types import rounding

__all__ = ["History", "Tolerances", "element_scales", "is_float"]

_DEFAULTS = {"float64": (1e-9, 1e-10), "float32": (1e-4, 1e-5), "float16": (1e-2, 4e-3), "bfloat16": (5e-2, 3e-2)}
_COARSEST = (2.5e-1, 2.5e-1)
_PART = 100.0
_TINY = 0.1
_LEAST_OTHERS = 2
_LEAST_CASES = 4
"""If an element is small in at least this many cases, it is small by design and not by chance."""


@dataclass(frozen=True)
class Tolerances:
    """The tolerances for the floats of one output.

    Attributes:
        rtol: the relative tolerance that the caller chose; None for the default.
        atol: the absolute tolerance that the caller chose; None for the default.
        computed: the coarsest float type that the output is computed with. If this type is coarser than the type of the output, the
            defaults for ``computed`` apply.
        roundings: the error of a single operator, as a multiple of the rounding error of the number 1. This multiple is larger for
            recurrent nodes, because onnxruntime implements their activations in another way than the equivalent operators.
    """

    rtol: float | None = None
    atol: float | None = None
    computed: np.dtype[Any] | None = None
    roundings: float = 1.0

    def coarsest(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the coarser of two types: ``dtype`` (the type of the output) and ``computed``."""
        kinds = [kind for kind in (dtype, self.computed) if kind is not None and is_float(kind)]
        return max(kinds, key=rounding, default=dtype)

    def one_rounding(self, dtype: np.dtype[Any]) -> float:
        """Return the rounding error of a single operator, such as an activation.

        The results of the operator are at most 1, and have the type ``dtype``.
        """
        return self.roundings * rounding(self.coarsest(dtype))

    def allowed(self, dtype: np.dtype[Any], scale: np.ndarray, largest: np.ndarray, output_maximum: float) -> np.ndarray:
        """Return how far each element of an output may differ.

        Args:
            dtype: the type of the values.
            scale: the scale of each element in this case.
            largest: an upper bound of the magnitudes of each element in all cases so far.
            output_maximum: the largest magnitude of the whole output in all cases so far.
        """
        dtype = self.coarsest(dtype)
        rtol, atol = _DEFAULTS.get(dtype.name, _COARSEST)
        part = np.where(largest < output_maximum, np.minimum(1.0, _PART * largest), 1.0) if output_maximum > _TINY else 1.0
        least = np.maximum(self.one_rounding(dtype) * part, atol * np.minimum(1.0, largest))
        return np.asarray((least if self.atol is None else self.atol) + (rtol if self.rtol is None else self.rtol) * scale)


def is_float(dtype: np.dtype[Any]) -> bool:
    """Return True for floats. This includes types of ml_dtypes such as bfloat16, whose kind is void."""
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def element_scales(magnitudes: np.ndarray, min_elements: int = _LEAST_OTHERS) -> np.ndarray:
    """Return the scale of each element of an output with these ``magnitudes``.

    The magnitudes must be finite. The result broadcasts to their shape.

    An axis sets no limit if each of its indices has fewer than ``min_elements`` elements, which may all be small by chance.
    """
    scales = np.asarray(magnitudes.max(initial=0.0))
    for along in _axes(magnitudes, min_elements).values():
        scales = np.minimum(scales, along)
    return scales


def _axes(magnitudes: np.ndarray, min_elements: int = _LEAST_OTHERS) -> dict[int, np.ndarray]:
    """Return a dict {axis: the largest magnitude for each index on this axis}.

    Each item is an array that broadcasts to the shape of ``magnitudes``: if the shape is [2, 3], the item for axis 0 has shape
    [2, 1]. Axes of size 1, and axes with fewer than ``min_elements`` elements for each index, are not included.
    """
    largest = {}
    for axis, size in enumerate(magnitudes.shape):
        if size > 1 and magnitudes.size >= min_elements * size:
            others = tuple(other for other in range(magnitudes.ndim) if other != axis)
            largest[axis] = magnitudes.max(axis=others, keepdims=True)
    return largest


@dataclass
class History:
    """The largest magnitudes of an output in all cases so far.

    There are three kinds:

    - the largest magnitude of all elements;
    - for each axis that always had the same size: the largest magnitude for each index on this axis;
    - for each element, if the shape was always the same: the largest magnitude of the element, and its largest ratio to the maximum
      of the same case.
      These numbers are used only after ``_LEAST_CASES`` cases.
    """

    largest: float = 0.0
    _rank: int | None = None
    _along: dict[int, np.ndarray] = field(default_factory=dict)
    _cases: int = 0
    _elements: list[np.ndarray] | None = None
    _items: dict[int, "History"] = field(default_factory=dict)

    def item(self, position: int) -> "History":
        """Return the history of one item of an output that is a sequence."""
        return self._items.setdefault(position, History())

    def learn(self, magnitudes: np.ndarray) -> None:
        """Add the magnitudes of the elements in another case."""
        most = float(magnitudes.max(initial=0.0))
        self.largest = max(self.largest, most)
        if not magnitudes.size:
            return
        if most:
            self._learn_elements([magnitudes, magnitudes / most])
        fresh = _axes(magnitudes)
        if self._rank != magnitudes.ndim:
            self._along = fresh if self._rank is None else {}
            self._rank = magnitudes.ndim
            return
        same = {axis: along for axis, along in self._along.items() if magnitudes.shape[axis] == along.size}
        self._along = {axis: np.maximum(along, fresh[axis]) if axis in fresh else along for axis, along in same.items()}

    def _learn_elements(self, fresh: list[np.ndarray]) -> None:
        self._cases += 1
        if self._cases == 1:
            self._elements = fresh
        elif self._elements is not None:
            is_same_shape = self._elements[0].shape == fresh[0].shape
            self._elements = list(map(np.maximum, self._elements, fresh)) if is_same_shape else None

    def scales(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return, for each element, an upper bound of its absolute values in all cases so far.

        The bounds broadcast to ``shape``.
        """
        largest = np.asarray(self.largest)
        for axis, along in self._along.items():
            if self._rank == len(shape) and shape[axis] == along.size:
                largest = np.minimum(largest, along)
        elements = self._known(shape)
        return largest if elements is None else np.minimum(largest, elements[0])

    def proportions(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return for each element its largest ratio so far to the maximum of the same case.

        The ratios broadcast to ``shape``.
        """
        elements = self._known(shape)
        return np.ones(()) if elements is None else elements[1]

    def _known(self, shape: tuple[int, ...]) -> list[np.ndarray] | None:
        known = self._cases >= _LEAST_CASES and self._elements is not None and self._elements[0].shape == shape
        return self._elements if known else None
