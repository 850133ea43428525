"""Loops that are linear systems with constant matrices: ``s' = s A + u B + a`` and ``y = s C + u D + d``."""

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
    """A loop as a system.

    Args:
        matrices: The n states from m inputs, and the k outputs.
        largest: [n + m, ...], the columns of all that the body computes on the way.
        state_sizes: The elements of each state; ``inputs`` and ``outputs`` have theirs.
        is_elementwise: The system is the same for each element, and each state, input and output is one number.
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
        """The states whose last values somebody wants."""
        return [state for state in self.states if is_used(state.final)]


@dataclass(frozen=True)
class AffineMap:
    """``more``, and for each source what each of its elements adds to it, along axis 0 of an array of the same shape behind."""

    more: np.ndarray
    terms: Mapping[ir.Value, np.ndarray] = field(default_factory=dict)

    @staticmethod
    def source(value: ir.Value, dims: Sequence[int]) -> "AffineMap":
        """Return ``value`` itself, of shape ``dims``."""
        more = np.zeros(dims)
        return AffineMap(more, {value: np.eye(more.size).reshape(more.size, *dims)})

    def plus(self, other: "AffineMap", sign: float = 1.0) -> "AffineMap":
        """Add, with broadcasting."""
        more = self.more + sign * other.more
        terms = dict[ir.Value, np.ndarray]()
        for part, factor in ((self, 1.0), (other, sign)):
            for source, term in part.terms.items():
                lifted = term.reshape(len(term), *[1] * (more.ndim - term.ndim + 1), *term.shape[1:])
                terms[source] = terms.get(source, 0) + factor * np.broadcast_to(lifted, (len(term), *more.shape))
        return AffineMap(more, terms)

    def times(self, factor: np.ndarray) -> "AffineMap":
        """Multiply by constants, with broadcasting."""
        wide = self.plus(AffineMap(np.zeros_like(factor)))
        return AffineMap(wide.more * factor, {source: term * factor for source, term in wide.terms.items()})

    def product(self, matrix: np.ndarray, is_left: bool) -> "AffineMap":
        """Multiply by a matrix, which is the left factor if ``is_left``."""
        if self.more.ndim == 1 and is_left:
            matrix, is_left = np.moveaxis(matrix, -1, 0) if matrix.ndim <= 2 else matrix, matrix.ndim > 2
        if matrix.ndim > 2 or (self.more.ndim == 1 and is_left):
            raise ValueError
        terms = {source: matrix @ term if is_left else term @ matrix for source, term in self.terms.items()}
        return AffineMap(matrix @ self.more if is_left else self.more @ matrix, terms)

    def gathered(self, index: np.ndarray) -> "AffineMap":
        """Return the elements at ``index``, in its shape."""
        terms = {source: term.reshape(len(term), -1)[:, index] for source, term in self.terms.items()}
        return AffineMap(self.more.reshape(-1)[index], terms)

    def transposed(self) -> "AffineMap":
        """Return the transposed matrix."""
        return self.gathered(np.arange(self.more.size).reshape(self.more.shape).T)
