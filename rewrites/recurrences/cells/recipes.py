"""How the arrays of a cell come about from tensors that are known only when the model runs."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.values import static_dims
from rewrites.ops.versions import concat, gather, reshape, slice_axis, transpose

__all__ = ["Numbers", "Piece", "Recipe"]

Numbers = Mapping[ir.Value, np.ndarray]
"""What such tensors are taken to hold."""


@dataclass(frozen=True)
class Piece:
    """``factor`` times the numbers of ``weight`` at the flat places ``at``, in their shape."""

    weight: ir.Value
    at: np.ndarray
    factor: float

    def value(self, numbers: Numbers) -> np.ndarray:
        """Return it for given numbers."""
        return np.asarray(self.factor * numbers[self.weight].reshape(-1)[self.at])

    def rectangle(self) -> tuple[int, int, bool] | None:
        """Return the first row and column of the part of a matrix that it is, and whether transposed; a vector is one row."""
        rows, columns = self._dims
        if not rows:
            return None
        places = np.arange(rows * columns).reshape(rows, columns)
        wide = self.at.reshape(1, -1) if self.at.ndim == 1 else self.at
        for turned in (False, True):
            wanted = wide.T if turned else wide
            row, column = divmod(int(wanted[0, 0]), columns)
            if np.array_equal(places[row : row + wanted.shape[0], column : column + wanted.shape[1]], wanted):
                return row, column, turned
        return None

    @property
    def _dims(self) -> tuple[int, int]:
        dims = [dim for dim in static_dims(self.weight) or () if dim != 1] or [1]
        return (1, dims[0]) if len(dims) == 1 else (dims[0], dims[1]) if len(dims) == 2 else (0, 0)

    def write(self, b: Builder) -> ir.Value:
        """Write it: a rectangle of a matrix, or a run of a vector, where it is that."""
        found = self.rectangle()
        if found is None:
            made = gather(b, reshape(b, self.weight, [-1]), b.const(self.at), 0)
        else:
            made = self._cut(b, *found)
        assert self.weight.dtype is not None
        return made if self.factor == 1 else b.op("Mul", made, b.const(np.asarray(self.factor, self.weight.dtype.numpy())))

    def _cut(self, b: Builder, row: int, column: int, turned: bool) -> ir.Value:
        (rows, columns), shape = self._dims, (1, len(self.at)) if self.at.ndim == 1 else self.at.shape
        height, width = reversed(shape) if turned else shape
        made = reshape(b, self.weight, [rows, columns])
        if height < rows:
            made = slice_axis(b, made, 0, row, row + height)
        if width < columns:
            made = slice_axis(b, made, 1, column, column + width)
        made = transpose(b, made, [1, 0]) if turned else made
        return reshape(b, made, [len(self.at)]) if self.at.ndim == 1 else made


@dataclass(frozen=True)
class Recipe:
    """An array as blocks one below the other, each the sum of ``pieces`` and of a constant."""

    blocks: tuple[tuple[tuple[Piece, ...], np.ndarray], ...]

    @property
    def is_exact(self) -> bool:
        """Whether nothing is added or multiplied."""
        return all(len(pieces) == 1 and abs(pieces[0].factor) == 1 and not constant.any() for pieces, constant in self.blocks)

    @property
    def work(self) -> tuple[int, int]:
        """How many numbers are copied in blocks, and how many are picked out one by one, each time the model runs."""
        pieces = [piece for parts, _ in self.blocks for piece in parts]
        picked = sum(piece.at.size for piece in pieces if piece.rectangle() is None)
        return sum(piece.at.size for piece in pieces) - picked, picked

    def value(self, numbers: Numbers) -> np.ndarray:
        """Return the array for given numbers."""
        return np.concatenate([constant + sum(piece.value(numbers) for piece in pieces) for pieces, constant in self.blocks])

    def write(self, b: Builder, kind: ir.DataType) -> ir.Value:
        """Write the array as a tensor of type ``kind``."""
        made = []
        for pieces, constant in self.blocks:
            parts = [piece.write(b) for piece in pieces]
            parts = [part if part.dtype == kind else b.op("Cast", part, to=int(kind)) for part in parts]
            if constant.any() or not parts:
                parts.append(b.const(constant.astype(kind.numpy())))
            total = parts[0]
            for part in parts[1:]:
                total = b.op("Add", total, part)
            made.append(total)
        return concat(b, made, 0)
