"""The abstract values of a loop's body.

A constant is read as an array. A value that varies from step to step is read as ``Features`` or as ``Transposed`` features. A value
that cannot be read is None. Features are polynomials whose variables come from sources. A source is a state, a scanned tensor, or a
product of activations that is multiplied by a matrix.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import shape_dims
from rewrites.loops import ScanView
from rewrites.recurrences.cells.features import Dims, Features, rows_of
from rewrites.recurrences.cells.linear_map import LinearMap, joined
from rewrites.recurrences.cells.polynomial import Polynomial
from rewrites.recurrences.constants import ConstantReader

__all__ = ["AbstractValue", "OperatorReader", "Reading", "Transposed"]


@dataclass(frozen=True)
class Transposed:
    """A matrix with features along axis 0 and rows along axis 1: the transpose of ``features``.

    Such matrices occur in bodies that multiply by weights from the left, as in W @ h.
    """

    features: Features


AbstractValue = Features | Transposed | np.ndarray | None


@dataclass
class Reading:
    """The facts known so far about the values of one Scan's body.

    Args:
        derived: Maps each source that is a product of activations to its polynomial.
        dims: Maps each source to the sizes of its leading axes in one step.
        same: Maps a symbolic size to another size that was found to be equal to it.
        decided: The conditions that are assumed to be true or false, and the values that follow from these assumptions.
    """

    loop: ScanView
    constants: ConstantReader
    derived: dict[Hashable, Polynomial] = field(default_factory=dict)
    dims: dict[Hashable, Dims] = field(default_factory=dict)
    same: dict[str, int | str] = field(default_factory=dict)
    decided: set[ir.Value] = field(default_factory=set)
    _known: dict[ir.Value, AbstractValue] = field(default_factory=dict)

    def sizes(self, shape: ir.Shape) -> list[int | str | None]:
        """Return the dimensions of ``shape``, with one name or number for sizes found to be equal."""
        return [self._settled(dim) for dim in shape_dims(shape)]

    def _settled(self, dim: int | str | None) -> int | str | None:
        while isinstance(dim, str) and dim in self.same:
            dim = self.same[dim]
        return dim

    def learn_same(self, size: int | str, other: int | str) -> None:
        """Record that two sizes must be equal.

        Values that were read before keep the old sizes. So the caller must read the body again.
        """
        first, second = self._settled(size), self._settled(other)
        if isinstance(first, str) and first != second and second is not None:
            self.same[first] = second
        elif isinstance(second, str) and first != second and first is not None:
            self.same[second] = first

    @property
    def opset(self) -> int:
        """The version of the standard operator set."""
        return self.constants.opset

    @property
    def dtype(self) -> ir.DataType | None:
        """The element type of all floating-point states, or None if they have several types."""
        dtypes = {state.inner.dtype for state in self.loop.states if state.inner.dtype and state.inner.dtype.is_floating_point()}
        return dtypes.pop() if len(dtypes) == 1 else None

    def abstract(self, value: ir.Value | None) -> AbstractValue:
        """Return the abstract value of a body value or a captured value."""
        if value is None:
            return None
        return self._known[value] if value in self._known else self.constants.of(value)

    def features(self, value: ir.Value | None) -> Features | None:
        """Return the features of ``value``, or None if it is constant, transposed or cannot be read."""
        abstract = self.abstract(value)
        return abstract if isinstance(abstract, Features) else None

    def whole(self, value: ir.Value) -> Polynomial | None:
        """Return the polynomial that describes ``value`` in every row, or None if there is none.

        A constant that differs between rows, for example, has no such polynomial.
        """
        abstract = self.abstract(value)
        if not isinstance(abstract, np.ndarray):
            return abstract.whole() if isinstance(abstract, Features) else None
        if abstract.dtype.kind != "f" or abstract.size == 0:
            return None
        flat = abstract.reshape(-1)
        if (flat == flat[0]).all():
            return Polynomial.constant(flat[:1])
        return Polynomial.constant(flat) if abstract.ndim == 1 else None

    def are_same(self, value: ir.Value, other: ir.Value, *, axes: bool = False) -> bool:
        """Return True if ``value`` and ``other`` have the same type and hold the same numbers in each row.

        The shapes of the two values may differ in axes of size 1, unless ``axes`` is True.
        """
        first, second = self.features(value), self.features(other)
        if value.dtype != other.dtype or first is None or second is None or rows_of(first.dims) != rows_of(second.dims):
            return False
        if axes and (first.dims, first.shape) != (second.dims, second.shape):
            return False
        left, right = first.whole(), second.whole()
        return left is not None and right is not None and left.key == right.key

    def as_source(self, features: Features) -> LinearMap:
        """Return ``features`` as one linear map. Each run that is not affine becomes a new source."""
        products: dict[Hashable, Polynomial] = {("product", run.key): run for run in features.runs if not run.is_affine}
        self.derived.update(products)
        maps = (run.affine if run.is_affine else LinearMap.source(("product", run.key), run.width) for run in features.runs)
        return joined([*maps])

    @contextmanager
    def overriding(self, abstracts: Mapping[ir.Value, AbstractValue]) -> Iterator[None]:
        """Temporarily replace the abstract values of some values."""
        before = {value: self._known[value] for value in abstracts if value in self._known}
        self._known.update(abstracts)
        try:
            yield
        finally:
            for value in abstracts:
                del self._known[value]
            self._known.update(before)


OperatorReader = Callable[[Reading, ir.Node], Sequence[AbstractValue] | None]
"""Returns the abstract values of a node's outputs, or None if it cannot read the node."""
