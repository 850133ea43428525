"""The scale that the error of each element is measured by: that of its own row or column, not of the whole output.

    |y|  =  1000  0.1                       1000  0.1
            2000  0.2        scales   =     2000  0.2         an error of 0.01 is small on the left, and large on the right
            1500  0.3                       1500  0.3

The scale of an element is the least of the largest magnitudes of what shares its index along one axis. Where all cases have one
shape, it is also no more than what the element has been in proportion to the largest of a case.
"""

from dataclasses import dataclass, field

import numpy as np

__all__ = ["History", "own_scales"]

_LEAST_OTHERS = 2
_LEAST_CASES = 4
"""How often an element has to be small for that to be no accident."""


def own_scales(magnitudes: np.ndarray, others: int = _LEAST_OTHERS) -> np.ndarray:
    """Return the scale of every element, in a shape that broadcasts to that of ``magnitudes``, which are finite.

    ``others``: how many elements must share an index for their largest to be no accident.
    """
    scales = np.asarray(magnitudes.max(initial=0.0))
    for _, along in _axes(magnitudes, others):
        scales = np.minimum(scales, along)
    return scales


def _axes(magnitudes: np.ndarray, least: int = _LEAST_OTHERS) -> list[tuple[int, np.ndarray]]:
    """Return the largest magnitudes along each axis that has enough elements beside it for that to be no accident."""
    found = []
    for axis, size in enumerate(magnitudes.shape):
        if size > 1 and magnitudes.size >= least * size:
            others = tuple(other for other in range(magnitudes.ndim) if other != axis)
            found.append((axis, magnitudes.max(axis=others, keepdims=True)))
    return found


@dataclass
class History:
    """The largest magnitudes an output had so far: of all, along axes that have had one size only, and of each element.

    The latter where the shape has been one in all cases, and in enough of them: as they were, and in proportion to the largest of
    their case.
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
        """Take the magnitudes of another case into account."""
        most = float(magnitudes.max(initial=0.0))
        self.largest = max(self.largest, most)
        if not magnitudes.size:
            return
        if most:
            self._learn_elements([magnitudes, magnitudes / most])
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

    def _learn_elements(self, fresh: list[np.ndarray]) -> None:
        self._cases += 1
        if self._cases == 1:
            self._elements = fresh
        elif self._elements is not None:
            alike = self._elements[0].shape == fresh[0].shape
            self._elements = list(map(np.maximum, self._elements, fresh)) if alike else None

    def scales(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return what each element of an output of this shape has been as large as; it broadcasts to ``shape``."""
        found = np.asarray(self.largest)
        for axis, along in self._along.items():
            if self._rank == len(shape) and shape[axis] == along.size:
                found = np.minimum(found, along)
        elements = self._known(shape)
        return found if elements is None else np.minimum(found, elements[0])

    def proportions(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return how large each element is beside the largest of its case, at most; it broadcasts to ``shape``."""
        elements = self._known(shape)
        return np.ones(()) if elements is None else elements[1]

    def _known(self, shape: tuple[int, ...]) -> list[np.ndarray] | None:
        known = self._cases >= _LEAST_CASES and self._elements is not None and self._elements[0].shape == shape
        return self._elements if known else None
