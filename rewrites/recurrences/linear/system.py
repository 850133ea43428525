"""Classes for loops that are linear systems with constant matrices.

The next state is ``s' = s A + u B + a`` and the output is ``y = s C + u D + d``, for the state s and the input u.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from rewrites.loops import ScanOutput, State
from rewrites.recurrences.results import is_used
from rewrites.scans.linear_system import Matrices

__all__ = ["AffineMap", "System"]


@dataclass(frozen=True)
class System:
    """A loop as a linear system with n elements of states, m elements of inputs and k elements of outputs.

    Args:
        matrices: The matrices of the next states and of the outputs.
        largest: A matrix [n + m, ...] with one column for each number that the body computes, including intermediate results. The
            column holds the coefficients of the states and inputs in this number.
        state_sizes: The number of elements of each state.
        input_sizes: The number of elements of each input.
        output_sizes: The number of elements of each output.
        is_elementwise: True if the same system applies to each element of the states. All sizes are then 1.
    """

    states: tuple[State, ...]
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ScanOutput, ...]
    matrices: Matrices
    largest: np.ndarray
    state_sizes: tuple[int, ...]
    input_sizes: tuple[int, ...]
    output_sizes: tuple[int, ...]
    is_elementwise: bool

    @property
    def kept(self) -> list[State]:
        """The states whose values after the last step are read."""
        return [state for state in self.states if is_used(state.final)]


@dataclass(frozen=True)
class AffineMap:
    """A tensor that is a constant ``bias`` plus a linear function of other values, the sources.

    ``terms``: the coefficients of each source, an array [elements of the source, *axes of ``bias``].
    """

    bias: np.ndarray
    terms: Mapping[ir.Value, np.ndarray] = field(default_factory=dict)

    @staticmethod
    def source(value: ir.Value, dims: Sequence[int]) -> "AffineMap":
        """Return ``value``, of shape ``dims``, as a linear function of itself."""
        bias = np.zeros(dims)
        return AffineMap(bias, {value: np.eye(bias.size).reshape(bias.size, *dims)})

    def plus(self, other: "AffineMap", sign: float = 1.0) -> "AffineMap":
        """Return ``self + sign * other``, with broadcasting."""
        bias = self.bias + sign * other.bias
        terms = dict[ir.Value, np.ndarray]()
        for part, factor in ((self, 1.0), (other, sign)):
            for source, term in part.terms.items():
                lifted = term.reshape(len(term), *[1] * (bias.ndim - term.ndim + 1), *term.shape[1:])
                terms[source] = terms.get(source, 0) + factor * np.broadcast_to(lifted, (len(term), *bias.shape))
        return AffineMap(bias, terms)

    def times(self, factor: np.ndarray) -> "AffineMap":
        """Return ``self * factor``, with broadcasting."""
        wide = self.plus(AffineMap(np.zeros_like(factor)))
        return AffineMap(wide.bias * factor, {source: term * factor for source, term in wide.terms.items()})

    def product(self, matrix: np.ndarray, is_left: bool) -> "AffineMap":
        """Return ``matrix @ self`` if ``is_left``, else ``self @ matrix``."""
        if self.bias.ndim == 1 and is_left:
            matrix, is_left = np.moveaxis(matrix, -1, 0) if matrix.ndim <= 2 else matrix, matrix.ndim > 2
        if matrix.ndim > 2 or (self.bias.ndim == 1 and is_left):
            raise ValueError
        terms = {source: matrix @ term if is_left else term @ matrix for source, term in self.terms.items()}
        return AffineMap(matrix @ self.bias if is_left else self.bias @ matrix, terms)

    def gathered(self, index: np.ndarray) -> "AffineMap":
        """Return the elements at the flat indices ``index``, in the shape of ``index``."""
        terms = {source: term.reshape(len(term), -1)[:, index] for source, term in self.terms.items()}
        return AffineMap(self.bias.reshape(-1)[index], terms)

    def transposed(self) -> "AffineMap":
        """Return the transpose of this matrix."""
        return self.gathered(np.arange(self.bias.size).reshape(self.bias.shape).T)
