"""A body value as features: its last axes flattened, each run of features a polynomial of its own.

    [B, 4 * H]  =  leading axes [B], features [4 * H] in runs such as [3 * H sigmoids, H tanhs]

All movement of features (Split, Slice, Concat, Gather, Reshape, Transpose among them) is one ``taken``.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rewrites.recurrences.cells.linear_map import joined
from rewrites.recurrences.cells.polynomial import Polynomial

__all__ = ["Features"]


@dataclass(frozen=True, eq=False)
class Features:
    """``dims``: the leading axes, over which the work is the same, as far as they are known. ``shape``: the feature axes.

    ``runs``: polynomials whose widths add up to the number of features.
    """

    dims: tuple[int | str | None, ...]
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

    def indexed(self) -> np.ndarray:
        """The places of the features, in their shape."""
        return np.arange(self.width).reshape(self.shape)

    def taken(self, index: np.ndarray) -> "Features":
        """Return the features at the places in ``index``, in its shape."""
        flat = index.reshape(-1)
        starts = np.cumsum([0, *(run.width for run in self.runs)])
        owner = np.searchsorted(starts, flat, side="right") - 1
        cuts = [0, *(np.flatnonzero(np.diff(owner)) + 1).tolist(), len(flat)]
        runs = []
        for begin, end in itertools.pairwise(cuts):
            if begin == end:
                continue
            which = int(owner[begin])
            places = flat[begin:end] - starts[which]
            whole = len(places) == self.runs[which].width and (places == np.arange(len(places))).all()
            runs.append(self.runs[which] if whole else self.runs[which].taken(places))
        return Features(self.dims, tuple(index.shape), tuple(runs))

    def mapped(self, function: Callable[[Polynomial], Polynomial]) -> "Features":
        """Apply ``function`` to each run."""
        return Features(self.dims, self.shape, tuple(function(run) for run in self.runs))

    def combined(self, other: "Features", function: Callable[[Polynomial, Polynomial], Polynomial]) -> "Features":
        """Apply ``function`` to the runs of both, cut where either is; the shapes are the same."""
        ends = sorted({*np.cumsum([run.width for run in self.runs]), *np.cumsum([run.width for run in other.runs])})
        bounds = list(zip([0, *ends], ends, strict=False))
        pairs = zip(self._cut(bounds), other._cut(bounds), strict=True)
        return Features(max(self.dims, other.dims, key=len), self.shape, tuple(function(one, another) for one, another in pairs))

    def whole(self, begin: int = 0, end: int | None = None) -> Polynomial | None:
        """Return features ``begin`` to ``end`` as one polynomial, or None where they are of different kinds."""
        part = self.taken(np.arange(begin, self.width if end is None else end))
        if len(part.runs) == 1:
            return part.runs[0]
        if not all(run.is_affine for run in part.runs):
            return None
        return Polynomial(joined([run.affine for run in part.runs]))

    def _cut(self, bounds: Sequence[tuple[int, int]]) -> list[Polynomial]:
        if len(bounds) == len(self.runs):
            return list(self.runs)
        return [run for begin, end in bounds for run in self.taken(np.arange(begin, end)).runs]
