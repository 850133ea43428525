"""A recurrent cell of a loop: a rule recognises it, confirms it, and writes it as a native node.

The weight arrays of a cell are constants, or are assembled from parts of tensors that are known only at run time.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.values import static_dims
from rewrites.loops import State
from rewrites.ops.rnn.functions import DEFAULTS
from rewrites.ops.versions import concat, gather, reshape, slice_axis, transpose
from rewrites.recurrences.cells.equations import Equations

__all__ = ["ARRAYS", "Cell", "Numbers", "Piece", "Recipe", "source_of"]

ARRAYS = ("w", "r", "wb", "rb", "peepholes")

Numbers = Mapping[ir.Value, np.ndarray]
"""The assumed contents of tensors that are known only at run time."""


@dataclass(frozen=True)
class Piece:
    """A part of a run-time weight: ``factor`` times the elements of ``weight`` at the flat indices ``at``.

    The shape of the piece is the shape of ``at``. A flat index counts the elements of ``weight`` in row-major order.
    """

    weight: ir.Value
    at: np.ndarray
    factor: float

    def value(self, numbers: Numbers) -> np.ndarray:
        """Return the elements of the piece, computed from ``numbers``, the contents of the weights."""
        return np.asarray(self.factor * numbers[self.weight].reshape(-1)[self.at])

    def rectangle(self) -> tuple[int, int, bool] | None:
        """Return the position of the piece in the weight, or None if it is no rectangle of the weight.

        A vector counts as a matrix of one row.

        Returns:
            The first row and the first column of the rectangle, and True if the piece is the transpose of the rectangle.
        """
        rows, columns = self._dims
        if not rows:
            return None
        indices = np.arange(rows * columns).reshape(rows, columns)
        wide = self.at.reshape(1, -1) if self.at.ndim == 1 else self.at
        for transposed in (False, True):
            wanted = wide.T if transposed else wide
            row, column = divmod(int(wanted[0, 0]), columns)
            if np.array_equal(indices[row : row + wanted.shape[0], column : column + wanted.shape[1]], wanted):
                return row, column, transposed
        return None

    @property
    def _dims(self) -> tuple[int, int]:
        dims = [dim for dim in static_dims(self.weight) or () if dim != 1] or [1]
        return (1, dims[0]) if len(dims) == 1 else (dims[0], dims[1]) if len(dims) == 2 else (0, 0)

    def write(self, b: Builder) -> ir.Value:
        """Write the nodes that compute the piece, and return it.

        A rectangle of the weight is read by a Slice, any other piece by a Gather.
        """
        rectangle = self.rectangle()
        if rectangle is None:
            piece = gather(b, reshape(b, self.weight, [-1]), b.const(self.at), 0)
        else:
            piece = self._slice(b, *rectangle)
        assert self.weight.dtype is not None
        return piece if self.factor == 1 else b.op("Mul", piece, b.const(np.asarray(self.factor, self.weight.dtype.numpy())))

    def _slice(self, b: Builder, row: int, column: int, transposed: bool) -> ir.Value:
        (rows, columns), shape = self._dims, (1, len(self.at)) if self.at.ndim == 1 else self.at.shape
        height, width = reversed(shape) if transposed else shape
        piece = reshape(b, self.weight, [rows, columns])
        if height < rows:
            piece = slice_axis(b, piece, 0, row, row + height)
        if width < columns:
            piece = slice_axis(b, piece, 1, column, column + width)
        piece = transpose(b, piece, [1, 0]) if transposed else piece
        return reshape(b, piece, [len(self.at)]) if self.at.ndim == 1 else piece


@dataclass(frozen=True)
class Recipe:
    """How to assemble an array from run-time weights.

    ``blocks`` are joined on axis 0. A block is a pair (pieces, constant). Its value is the sum of all pieces and the constant.
    """

    blocks: tuple[tuple[tuple[Piece, ...], np.ndarray], ...]

    @property
    def is_exact(self) -> bool:
        """True if each element of the array is an element of a weight, or the negative of an element."""
        return all(len(pieces) == 1 and abs(pieces[0].factor) == 1 and not constant.any() for pieces, constant in self.blocks)

    @property
    def work(self) -> tuple[int, int]:
        """The number of elements that each run copies by Slices, and the number that it gathers one by one."""
        pieces = [piece for parts, _ in self.blocks for piece in parts]
        picked = sum(piece.at.size for piece in pieces if piece.rectangle() is None)
        return sum(piece.at.size for piece in pieces) - picked, picked

    def value(self, numbers: Numbers) -> np.ndarray:
        """Return the array, computed from ``numbers``, the contents of the weights."""
        return np.concatenate([constant + sum(piece.value(numbers) for piece in pieces) for pieces, constant in self.blocks])

    def write(self, b: Builder, kind: ir.DataType) -> ir.Value:
        """Write the nodes that assemble the array, and return it as a tensor of type ``kind``."""
        blocks = []
        for pieces, constant in self.blocks:
            parts = [piece.write(b) for piece in pieces]
            parts = [part if part.dtype == kind else b.op("Cast", part, to=int(kind)) for part in parts]
            if constant.any() or not parts:
                parts.append(b.const(constant.astype(kind.numpy())))
            blocks.append(reduce(partial(b.op, "Add"), parts))
        return concat(b, blocks, 0)


def source_of(state: State) -> Hashable:
    """Return the key of ``state`` as a source of linear maps."""
    return ("input", state.inner.name)


@dataclass(frozen=True, kw_only=True)
class Cell(Equations):
    """One recurrent cell of a loop.

    Args:
        hidden: The hidden state.
        cell: The cell state of an LSTM.
        sources: The keys and widths of the scanned values. Concatenated in this order, these values are the input of the cell.
        recipes: Maps the name of each array that depends on run-time weights, such as "w", to its recipe. The field of the cell
            with this name holds example numbers.
    """

    hidden: State
    cell: State | None = None
    sources: tuple[tuple[Hashable, int], ...]
    recipes: Mapping[str, Recipe] = field(default_factory=dict)

    @property
    def states(self) -> tuple[State, ...]:
        """The states of the cell, the hidden state first."""
        return (self.hidden,) if self.cell is None else (self.hidden, self.cell)

    @property
    def dtype(self) -> ir.DataType:
        """The element type of the hidden state."""
        assert self.hidden.inner.dtype is not None
        return self.hidden.inner.dtype

    @property
    def has_default_functions(self) -> bool:
        """True if the activations are the operator's defaults."""
        return tuple(function.name for function in self.functions) == DEFAULTS[self.op_type]

    def with_numbers(self, numbers: Numbers) -> "Cell":
        """Return a copy of the cell that has constant arrays in place of recipes.

        The recipes compute these arrays from ``numbers``, the contents of the run-time weights.
        """
        arrays: dict[str, Any] = {name: recipe.value(numbers) for name, recipe in self.recipes.items()}
        return replace(self, recipes={}, **arrays)

    def without_idle_inputs(self) -> "Cell":
        """Return a copy of the cell without the sources whose weights are all 0."""
        ends = np.cumsum([width for _, width in self.sources]).tolist()
        columns = {source: self.w[:, end - source[1] : end] for source, end in zip(self.sources, ends, strict=True)}
        used = tuple(source for source in self.sources if columns[source].any())
        w = np.concatenate([columns[source] for source in used], axis=1) if used else np.zeros((len(self.w), 0))
        return replace(self, sources=used, w=w)

    def describe(self, backwards: bool, masked: bool) -> str:
        """Describe the cell for users, for example ``LSTM, forward, H=128, lengths by mask``.

        Args:
            backwards: True if the loop runs from the last step to the first.
            masked: True if the cell has a mask, which lets rows keep their states in some steps.
        """
        names = dict.fromkeys(function.name for function in self.functions)
        parts = [
            self.op_type,
            "" if self.has_default_functions else f"activations {', '.join(names)}",
            "backward" if backwards else "forward",
            f"H={self.size}",
            "peepholes" if self.peepholes is not None else "",
            "input and forget gates coupled" if self.input_forget else "",
            "weights computed in the run" if self.recipes else "",
            "lengths by mask" if masked else "",
        ]
        return ", ".join(filter(None, parts))
