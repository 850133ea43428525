"""What the values of a loop's body are read as: abstract values, and what a reading knows of them.

A value is a constant (an array), or ``Features``, or not understood. Sources are states, tensors that are scanned, and products to
which a matrix is applied.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import shape_dims
from rewrites.loops import ScanView
from rewrites.recurrences.cells.features import Features
from rewrites.recurrences.cells.linear_map import Affine, joined
from rewrites.recurrences.cells.polynomial import Polynomial
from rewrites.recurrences.constants import Constants

__all__ = ["Flipped", "Meaning", "Reading", "rows_of"]


@dataclass(frozen=True)
class Flipped:
    """Rows of features that stand transposed: features along axis 0."""

    features: Features


Meaning = Features | Flipped | np.ndarray | None


@dataclass
class Reading:
    """What is known of the values of one Scan's body so far.

    ``derived``: the products behind sources of that kind. ``dims``: the leading axes of each source in one step. ``same``: sizes
    that turn out to be the same as others. ``decided``: conditions assumed to be true or false, and what follows.
    """

    loop: ScanView
    constants: Constants
    derived: dict[Hashable, Polynomial] = field(default_factory=dict)
    dims: dict[Hashable, tuple[int | str | None, ...]] = field(default_factory=dict)
    same: dict[str, int | str] = field(default_factory=dict)
    decided: set[ir.Value] = field(default_factory=set)
    _known: dict[ir.Value, Meaning] = field(default_factory=dict)

    def sizes(self, shape: ir.Shape) -> list[int | str | None]:
        """Return the dimensions of ``shape``, the same name for all that are the same."""
        return [self._settled(dim) for dim in shape_dims(shape)]

    def _settled(self, dim: int | str | None) -> int | str | None:
        while isinstance(dim, str) and dim in self.same:
            dim = self.same[dim]
        return dim

    def learn_same(self, one: int | str, other: int | str) -> None:
        """Note that two sizes must be the same, which holds from the next reading on."""
        first, second = self._settled(one), self._settled(other)
        if isinstance(first, str) and first != second and second is not None:
            self.same[first] = second
        elif isinstance(second, str) and first != second and first is not None:
            self.same[second] = first

    @property
    def opset(self) -> int:
        """The version of the standard operator set."""
        return self.constants.opset

    @property
    def kind(self) -> ir.DataType | None:
        """The element type of all states that are of floating point, where it is one."""
        kinds = {state.inner.dtype for state in self.loop.states if state.inner.dtype and state.inner.dtype.is_floating_point()}
        return kinds.pop() if len(kinds) == 1 else None

    def meaning(self, value: ir.Value | None) -> Meaning:
        """Return what ``value``, of the body or captured, means."""
        if value is None:
            return None
        return self._known[value] if value in self._known else self.constants.of(value)

    def features(self, value: ir.Value | None) -> Features | None:
        """Return ``value`` as features where it varies from step to step, else None."""
        meaning = self.meaning(value)
        return meaning if isinstance(meaning, Features) else None

    def whole(self, value: ir.Value) -> Polynomial | None:
        """Return what ``value`` is in a row as one polynomial, constant for a constant that is the same in all rows."""
        meaning = self.meaning(value)
        if not isinstance(meaning, np.ndarray):
            return meaning.whole() if isinstance(meaning, Features) else None
        if meaning.dtype.kind != "f" or meaning.size == 0:
            return None
        flat = meaning.reshape(-1)
        if (flat == flat[0]).all():
            return Polynomial.constant(flat[:1])
        return Polynomial.constant(flat) if meaning.ndim == 1 else None

    def are_same(self, one: ir.Value, other: ir.Value, *, axes: bool = False) -> bool:
        """Whether two values hold the same numbers row by row, though perhaps, without ``axes``, with other axes of one around."""
        first, second = self.features(one), self.features(other)
        if first is None or second is None or rows_of(first.dims) != rows_of(second.dims):
            return False
        if axes and (first.dims, first.shape) != (second.dims, second.shape):
            return False
        left, right = first.whole(), second.whole()
        return left is not None and right is not None and left.key == right.key

    def as_source(self, features: Features) -> Affine:
        """Return an affine map of ``features``, whose runs become sources of their own where they are none."""
        return joined([run.affine if run.is_affine else self._derived(run) for run in features.runs])

    def _derived(self, polynomial: Polynomial) -> Affine:
        key = ("product", polynomial.key)
        self.derived[key] = polynomial
        return Affine.source(key, polynomial.width)

    @contextmanager
    def believing(self, meanings: Mapping[ir.Value, Meaning]) -> Iterator[None]:
        """Read some values as other abstract values for a while."""
        before = {value: self._known[value] for value in meanings if value in self._known}
        self._known.update(meanings)
        try:
            yield
        finally:
            for value in meanings:
                del self._known[value]
            self._known.update(before)


def rows_of(dims: Sequence[int | str | None]) -> list[int | str | None]:
    """Return leading axes without those of size 1: what is alike there has the same rows."""
    return [dim for dim in dims if dim != 1]
