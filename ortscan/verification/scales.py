"""The scale that the error of each element is measured by: that of its own row or column, not of the whole output.

    |y|  =  1000  0.1                       1000  0.1
            2000  0.2        scales   =     2000  0.2         an error of 0.01 is small on the left, and large on the right
            1500  0.3                       1500  0.3

The scale of an element is the least of the largest magnitudes of what shares its index along one axis.
"""

from dataclasses import dataclass, field

import numpy as np

__all__ = ["History", "own_scales"]

_LEAST_OTHERS = 2


def own_scales(magnitudes: np.ndarray) -> np.ndarray:
    """Return the scale of every element, in a shape that broadcasts to that of ``magnitudes``, which are finite."""
    scales = np.asarray(magnitudes.max(initial=0.0))
    for _, along in _axes(magnitudes):
        scales = np.minimum(scales, along)
    return scales


def _axes(magnitudes: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Return the largest magnitudes along each axis that has enough elements beside it for that to be no accident."""
    found = []
    for axis, size in enumerate(magnitudes.shape):
        if size > 1 and magnitudes.size >= _LEAST_OTHERS * size:
            others = tuple(other for other in range(magnitudes.ndim) if other != axis)
            found.append((axis, magnitudes.max(axis=others, keepdims=True)))
    return found


@dataclass
class History:
    """The largest magnitudes an output had so far: of all, and along axes that have had one size only."""

    largest: float = 0.0
    _rank: int | None = None
    _along: dict[int, np.ndarray] = field(default_factory=dict)

    def learn(self, magnitudes: np.ndarray) -> None:
        """Take the magnitudes of another case into account."""
        self.largest = max(self.largest, float(magnitudes.max(initial=0.0)))
        if not magnitudes.size:
            return
        if self._rank != magnitudes.ndim:
            first, self._rank = self._rank is None, magnitudes.ndim
            self._along = dict(_axes(magnitudes)) if first else {}
            return
        fresh = dict(_axes(magnitudes))
        for axis in list(self._along):
            if magnitudes.shape[axis] != self._along[axis].size:
                del self._along[axis]
            elif axis in fresh:
                self._along[axis] = np.maximum(self._along[axis], fresh[axis])

    def scales(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return what each element of an output of this shape has been as large as; it broadcasts to ``shape``."""
        found = np.asarray(self.largest)
        for axis, along in self._along.items():
            if self._rank == len(shape) and shape[axis] == along.size:
                found = np.minimum(found, along)
        return found
