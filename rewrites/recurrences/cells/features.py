"""Represent a body value as features, each described by a polynomial.

    [B, 4 * H]  =  leading axes [B], features [4 * H] in runs such as [3 * H sigmoids, H tanhs]

The features are the last axes, flattened. They are cut into runs, and one polynomial describes all features of a run.

Each operator that moves features (such as Split, Slice, Concat, Gather, Reshape or Transpose) becomes one ``gather``. The two
operands of an elementwise operator are broadcast to the same leading axes and the same feature axes.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rewrites.recurrences.cells.linear_map import joined
from rewrites.recurrences.cells.polynomial import Polynomial

__all__ = ["Dims", "Features", "rows_of", "same_lead", "with_constant", "with_same_shape"]

Dims = tuple[int | str | None, ...]


@dataclass(frozen=True, eq=False)
class Features:
    """A body value whose last axes are features, each described by a polynomial.

    Args:
        dims: The sizes of the leading axes. The polynomials hold for every index into these axes.
        shape: The sizes of the feature axes.
        runs: The polynomials. Each describes a run of consecutive features, and has the width of the run.
    """

    dims: Dims
    shape: tuple[int, ...]
    runs: tuple[Polynomial, ...]

    @property
    def lead(self) -> int:
        """The number of leading axes."""
        return len(self.dims)

    @property
    def width(self) -> int:
        """The number of features."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_matrix(self) -> bool:
        """True if there are one leading axis and one feature axis."""
        return len(self.dims) == len(self.shape) == 1

    def indexed(self) -> np.ndarray:
        """Return the flat index of each feature, in the shape of the features."""
        return np.arange(self.width).reshape(self.shape)

    def gather(self, index: np.ndarray) -> "Features":
        """Return the features at the flat indices ``index``. Their shape is the shape of ``index``."""
        flat = index.reshape(-1)
        starts = np.cumsum([0, *(run.width for run in self.runs)])
        owner = np.searchsorted(starts, flat, side="right") - 1
        cuts = [0, *(np.flatnonzero(np.diff(owner)) + 1).tolist(), len(flat)]
        runs = []
        for begin, end in itertools.pairwise(cuts):
            if begin == end:
                continue
            which = int(owner[begin])
            inside = flat[begin:end] - starts[which]
            is_whole = np.array_equal(inside, np.arange(self.runs[which].width))
            runs.append(self.runs[which] if is_whole else self.runs[which].gather(inside))
        return Features(self.dims, tuple(index.shape), tuple(runs))

    def mapped(self, function: Callable[[Polynomial], Polynomial]) -> "Features":
        """Apply ``function`` to each run."""
        return Features(self.dims, self.shape, tuple(function(run) for run in self.runs))

    def combined(self, other: "Features", function: Callable[[Polynomial, Polynomial], Polynomial]) -> "Features":
        """Apply ``function`` to each pair of a run of ``self`` and a run of ``other``.

        ``self`` and ``other`` must have the same feature axes. Longer runs are first cut, so that the two runs of each pair
        describe the same features.
        """
        ends = sorted({*np.cumsum([run.width for run in self.runs]), *np.cumsum([run.width for run in other.runs])})
        bounds = list(zip([0, *ends], ends, strict=False))
        pairs = zip(self._cut(bounds), other._cut(bounds), strict=True)
        return Features(max(self.dims, other.dims, key=len), self.shape, tuple(function(left, right) for left, right in pairs))

    def whole(self, begin: int = 0, end: int | None = None) -> Polynomial | None:
        """Return the features ``begin`` to ``end`` - 1, by default all, as one polynomial, or None.

        If the features lie in several runs, join the polynomials of these runs. Only affine polynomials can be joined; if one is
        not affine, return None.
        Also return None if there are no features.
        """
        part = self.gather(np.arange(begin, self.width if end is None else end))
        if len(part.runs) == 1:
            return part.runs[0]
        if not part.runs or not all(run.is_affine for run in part.runs):
            return None
        return Polynomial(joined([run.affine for run in part.runs]))

    def broadcast(self, shape: tuple[int, ...]) -> "Features":
        """Broadcast the feature axes to ``shape``."""
        return self if self.shape == shape else self.gather(np.broadcast_to(self.indexed(), shape))

    def _cut(self, bounds: Sequence[tuple[int, int]]) -> list[Polynomial]:
        if len(bounds) == len(self.runs):
            return list(self.runs)
        return [run for begin, end in bounds for run in self.gather(np.arange(begin, end)).runs]


def rows_of(dims: Sequence[int | str | None]) -> list[int | str | None]:
    """Return the leading axes ``dims`` without axes of size 1.

    Two values have the same rows if this function returns equal lists for their leading axes.
    """
    return [dim for dim in dims if dim != 1]


def same_lead(first: Features, second: Features) -> bool:
    """Return True if ``first`` and ``second`` have the same leading axes, of known sizes.

    One of the two may have additional axes of size 1 before these axes.
    """
    short, long = sorted((first.dims, second.dims), key=len)
    extra = len(long) - len(short)
    pairs = zip(short, long[extra:], strict=True)
    return all(dim == 1 for dim in long[:extra]) and all(a is not None and a == b for a, b in pairs)


def with_same_shape(first: Features, second: Features) -> tuple[Features, Features] | None:
    """Broadcast ``first`` and ``second`` to equal feature axes.

    Return None if their leading axes may differ, or if they have different numbers of feature axes.
    """
    if not same_lead(first, second) or len(first.shape) != len(second.shape):
        return None
    shape = np.broadcast_shapes(first.shape, second.shape)
    return first.broadcast(shape), second.broadcast(shape)


def with_constant(features: Features, array: np.ndarray) -> tuple[Features, Features] | None:
    """Broadcast ``features`` and the constant ``array`` to one shape.

    Return None if ``array`` varies over the leading axes, or is no array of floats.
    """
    if array.dtype.kind != "f":
        return None
    axes = len(features.shape)
    if array.ndim < axes:
        array = array.reshape((1,) * (axes - array.ndim) + array.shape)
    if any(size != 1 for size in array.shape[: array.ndim - axes]):
        return None
    extra = max(0, array.ndim - axes - features.lead)
    dims = (*(1,) * extra, *features.dims)
    array = array.reshape(array.shape[array.ndim - axes :])
    shape = np.broadcast_shapes(features.shape, array.shape)
    numbers = np.broadcast_to(array, shape).reshape(-1)
    return Features(dims, shape, features.broadcast(shape).runs), Features(dims, shape, (Polynomial.constant(numbers),))
