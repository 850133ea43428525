"""Tensors of a loop body as a constant plus a linear function of other values.

The constants may differ from step to step. Axis 0 of each array is the step. If an array is the same in all steps, this axis has
one element.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

__all__ = ["AffineMap", "biases", "matrix_of", "moved"]


@dataclass(frozen=True)
class AffineMap:
    """A tensor that is a constant ``bias`` plus a linear function of other values, the sources.

    Args:
        bias: An array [steps, axes of the tensor].
        terms: The coefficients of each source, an array [steps, elements of the source, axes of the tensor].
    """

    bias: np.ndarray
    terms: Mapping[ir.Value, np.ndarray] = field(default_factory=dict)

    @staticmethod
    def source(value: ir.Value, dims: Sequence[int]) -> "AffineMap":
        """Return ``value``, of shape ``dims``, as a linear function of itself."""
        size = math.prod(dims)
        return AffineMap(np.zeros((1, *dims)), {value: np.eye(size).reshape(1, size, *dims)})

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return self.bias.shape[1:]

    @property
    def size(self) -> int:
        """The number of elements of the tensor."""
        return math.prod(self.dims)

    def plus(self, other: "AffineMap", sign: float = 1.0) -> "AffineMap":
        """Return ``self + sign * other``, with broadcasting."""
        dims = np.broadcast_shapes(self.dims, other.dims)
        terms = dict[ir.Value, np.ndarray]()
        for part, factor in ((self, 1.0), (other, sign)):
            for source, term in part.terms.items():
                wide = np.broadcast_to(_with_rank(term, 2, len(dims)), (*term.shape[:2], *dims))
                terms[source] = terms.get(source, 0) + factor * wide
        return AffineMap(_with_rank(self.bias, 1, len(dims)) + sign * _with_rank(other.bias, 1, len(dims)), terms)

    def times(self, factor: np.ndarray | float) -> "AffineMap":
        """Return ``self * factor``, with broadcasting.

        ``factor``: a number, or an array [steps, axes of a tensor].
        """
        numbers = np.reshape(factor, 1) if isinstance(factor, float) else factor
        wide = self.plus(AffineMap(np.zeros_like(numbers)))
        numbers = _with_rank(numbers, 1, len(wide.dims))
        return AffineMap(wide.bias * numbers, {source: term * numbers[:, None] for source, term in wide.terms.items()})

    def product(self, matrix: np.ndarray, is_left: bool) -> "AffineMap":
        """Return ``matrix @ self`` if ``is_left``, else ``self @ matrix``.

        ``matrix``: a vector or matrix for each step. Raise ValueError if the operands do not fit.
        """
        if not self.dims or not 2 <= matrix.ndim <= 3:
            raise ValueError
        added = [axis for axis, part in ((-1, self.bias), (-2, matrix)) if part.ndim == 2]
        if not is_left:
            added = [-3 - axis for axis in added]
        weights = np.expand_dims(matrix, -2 if is_left else -1) if matrix.ndim == 2 else matrix

        def multiply(part: np.ndarray) -> np.ndarray:
            whole = np.expand_dims(part, -1 if is_left else -2) if self.bias.ndim == 2 else part
            wide = weights.reshape(len(weights), *[1] * (whole.ndim - 3), *weights.shape[1:])
            result: np.ndarray = np.squeeze(wide @ whole if is_left else whole @ wide, tuple(added))
            return result

        return AffineMap(multiply(self.bias), {source: multiply(term) for source, term in self.terms.items()})

    def gathered(self, index: np.ndarray) -> "AffineMap":
        """Return the elements at the flat indices ``index``, in the shape of ``index``."""
        terms = {source: term.reshape(*term.shape[:2], -1)[..., index] for source, term in self.terms.items()}
        return AffineMap(self.bias.reshape(len(self.bias), -1)[:, index], terms)

    def transposed(self) -> "AffineMap":
        """Return the transpose of this matrix."""
        return self.gathered(np.arange(self.size).reshape(self.dims).T)

    def summed(self, axes: Sequence[int], *, keepdims: bool) -> "AffineMap":
        """Return the sums over ``axes`` of the tensor."""
        terms = {source: term.sum(tuple(axis + 2 for axis in axes), keepdims=keepdims) for source, term in self.terms.items()}
        return AffineMap(self.bias.sum(tuple(axis + 1 for axis in axes), keepdims=keepdims), terms)


def moved(move: Callable[..., Sequence[np.ndarray]], parts: Sequence[AffineMap]) -> list[AffineMap]:
    """Return the results of an operator that moves the elements of ``parts``.

    ``move``: takes a list of arrays with the shapes of ``parts``, and returns the moved arrays.
    """
    starts = np.cumsum([0, *(part.size for part in parts)])
    indices = [np.arange(part.size).reshape(part.dims) + start for part, start in zip(parts, starts, strict=False)]
    sizes = {source: term.shape[1] for part in parts for source, term in part.terms.items()}
    whole = AffineMap(biases(parts), {source: matrix_of(parts, [source], [size]) for source, size in sizes.items()})
    return [whole.gathered(index) for index in move(indices)]


def matrix_of(maps: Sequence[AffineMap], sources: Sequence[ir.Value], widths: Sequence[int]) -> np.ndarray:
    """Return the coefficients of all ``maps`` as one matrix for each step.

    The axes are [steps, elements of sources, elements of maps]. ``widths``: the number of elements of each source.
    """
    steps = max((len(term) for affine in maps for term in affine.terms.values()), default=1)
    result = np.zeros((steps, sum(widths), sum(affine.size for affine in maps)))
    rows, columns = (np.cumsum([0, *sizes]) for sizes in (widths, [affine.size for affine in maps]))
    for row, width, source in zip(rows, widths, sources, strict=False):
        for column, affine in zip(columns, maps, strict=False):
            if source in affine.terms:
                term = affine.terms[source]
                result[:, row : row + width, column : column + affine.size] = term.reshape(len(term), width, affine.size)
    return result


def biases(maps: Sequence[AffineMap]) -> np.ndarray:
    """Return the constants of all ``maps`` as one vector for each step: [steps, elements of maps]."""
    steps = max((len(affine.bias) for affine in maps), default=1)
    rows = [np.broadcast_to(affine.bias.reshape(len(affine.bias), affine.size), (steps, affine.size)) for affine in maps]
    return np.concatenate(rows, 1) if rows else np.zeros((1, 0))


def _with_rank(array: np.ndarray, leading: int, rank: int) -> np.ndarray:
    """Return ``array`` with axes of size 1 after its ``leading`` axes, so that ``rank`` axes follow."""
    return array.reshape(*array.shape[:leading], *[1] * (rank - array.ndim + leading), *array.shape[leading:])
