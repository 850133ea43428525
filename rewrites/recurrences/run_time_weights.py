"""Weights that are computed or fed when the model runs: which of a cell's numbers is which of theirs.

    body reads W, which is an input of the model    ->    LSTM(x, Transpose(Slice(W)), ...)

The body is read with numbers in place of such weights, and once more for each of them with its numbers changed. A number of the
cell that changes by s times what one of theirs does is s times that one, plus what else it is. All numbers are whole and the
changes odd, so that nothing is rounded or taken for another; a last reading with new numbers confirms the result.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from rewrites.builder import Builder
from rewrites.loops import ScanView, captured_values
from rewrites.recurrences.cell import ARRAYS, Cell
from rewrites.recurrences.constants import Constants
from rewrites.spelling import concat, gather, reshape, slice_axis, transpose
from rewrites.values import static_dims

__all__ = ["Piece", "Recipe", "cells_of_run_time_weights", "run_time_weights"]

_MOST_WEIGHTS = 16
_MOST_NUMBERS = 1 << 21
_LARGEST = 1 << 28
_SPACING = 61
_FACTORS = (1.0, -1.0, 2.0, 0.5, -2.0, -0.5)

_STRUCTURE = ("op_type", "hidden", "cell", "sources", "functions", "linear_before_reset", "input_forget")

_Found = tuple[Cell, Any]
_Numbers = Mapping[ir.Value, np.ndarray]


@dataclass(frozen=True)
class Piece:
    """``factor`` times the numbers of ``weight`` at the flat places ``at``, in their shape."""

    weight: ir.Value
    at: np.ndarray
    factor: float

    def value(self, numbers: _Numbers) -> np.ndarray:
        """Give it for given numbers."""
        return np.asarray(self.factor * numbers[self.weight].reshape(-1)[self.at])

    def rectangle(self) -> tuple[int, int, bool] | None:
        """Give the first row and column of the rectangle of a matrix that it is, and whether it is turned; a vector is one row."""
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

    def value(self, numbers: _Numbers) -> np.ndarray:
        """Give the array for given numbers."""
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


def run_time_weights(loop: ScanView, opset: int) -> list[ir.Value]:
    """Give the captured tensors of known shapes that may be weights, and are no constants."""
    constants, found = Constants(opset), list[ir.Value]()
    for value in captured_values(loop.body):
        dims = static_dims(value)
        if value.dtype is None or not value.dtype.is_floating_point() or dims is None or constants.of(value) is not None:
            continue
        if 0 not in dims:
            found.append(value)
    numbers = sum(int(np.prod(static_dims(value) or ())) for value in found)
    return found if len(found) <= _MOST_WEIGHTS and numbers <= _MOST_NUMBERS else []


def cells_of_run_time_weights(weights: Sequence[ir.Value], find: Callable[[_Numbers], list[_Found]]) -> Iterator[_Found]:
    """Give the cells that the body is whatever the ``weights`` hold; ``find`` gives those it is with numbers in their place.

    What ``find`` gives beside each cell is passed on.
    """
    base, last = _numbers(weights, 1), _numbers(weights, 2)
    found = find(base)
    if not found:
        return
    changes = _changes(weights)
    others = [find(base | {weight: np.asarray(base[weight] + changes[weight])}) for weight in weights]
    others.append(find(last))
    for place, (cell, beside) in enumerate(found):
        matching = [other[place][0] for other in others if place < len(other) and _alike(cell, other[place][0])]
        recipes = _recipes(cell, matching, base, changes, last) if len(matching) == len(others) else None
        if recipes is not None:
            yield replace(cell, recipes=recipes), beside


def _recipes(cell: Cell, others: Sequence[Cell], base: _Numbers, changes: _Numbers, last: _Numbers) -> dict[str, Recipe] | None:
    """Give how the arrays of ``cell`` come about, from what they are in ``others``: one for each change, and the last."""
    recipes = dict[str, Recipe]()
    for name in ARRAYS:
        array, *changed, final = (getattr(one, name) for one in (cell, *others))
        if array is None or array.size == 0:
            continue
        recipe = _recipe(array, dict(zip(changes, changed, strict=True)), base, changes, len(array) // _blocks(cell, name))
        if recipe is None or not np.array_equal(recipe.value(last), final):
            return None
        if any(pieces for pieces, _ in recipe.blocks):
            recipes[name] = recipe
    return recipes


def _blocks(cell: Cell, name: str) -> int:
    return 3 if name == "peepholes" else len(cell.w) // cell.size


def _numbers(weights: Sequence[ir.Value], seed: int) -> dict[ir.Value, np.ndarray]:
    """Give whole numbers for each weight, in float64."""
    rng = np.random.default_rng(seed)
    return {weight: np.asarray(rng.integers(1, _LARGEST, static_dims(weight)).astype(np.float64)) for weight in weights}


def _changes(weights: Sequence[ir.Value]) -> dict[ir.Value, np.ndarray]:
    """Give odd numbers for each weight, in float64, of which each tells its place."""
    rng = np.random.default_rng(3)
    made = {}
    for weight in weights:
        dims = static_dims(weight) or ()
        places = np.arange(int(np.prod(dims))).reshape(dims)
        made[weight] = np.asarray((2 * (places * _SPACING + rng.integers(0, _SPACING, dims)) + 1).astype(np.float64))
    return made


def _alike(one: Cell, other: Cell) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in _STRUCTURE) and all(
        np.shape(getattr(one, name)) == np.shape(getattr(other, name)) for name in ARRAYS
    )


def _recipe(array: np.ndarray, changed: _Numbers, base: _Numbers, changes: _Numbers, block: int) -> Recipe | None:
    """Read ``array`` as one block, or as blocks of ``block`` rows where fewer of its numbers must be picked out one by one then."""
    found = list[Recipe]()
    for size in dict.fromkeys((len(array), block)):
        cuts = [slice(start, start + size) for start in range(0, len(array), size)]
        blocks = [_block(array[rows], {weight: other[rows] for weight, other in changed.items()}, base, changes) for rows in cuts]
        known = tuple(each for each in blocks if each is not None)
        if len(known) == len(blocks):
            found.append(Recipe(known))
            if not found[-1].work[1]:
                break
    return min(found, key=lambda recipe: recipe.work[1], default=None)


def _block(array: np.ndarray, changed: _Numbers, base: _Numbers, changes: _Numbers) -> tuple[tuple[Piece, ...], np.ndarray] | None:
    pieces, constant = list[Piece](), array
    for weight, other in changed.items():
        difference = other - array
        if not difference.any():
            continue
        piece = _piece(weight, difference, changes[weight])
        if piece is None:
            return None
        pieces.append(piece)
        constant = constant - piece.value(base)
    return tuple(pieces), constant


def _piece(weight: ir.Value, difference: np.ndarray, change: np.ndarray) -> Piece | None:
    """Find the places whose change ``difference`` is a multiple of."""
    flat, first = change.reshape(-1), difference.reshape(-1)[0]
    for factor in _FACTORS:
        if (first / factor) % 2 != 1 or not 0 < first / factor <= flat[-1]:
            continue
        places = np.clip((difference / factor - 1) // (2 * _SPACING), 0, len(flat) - 1).astype(np.int64)
        return Piece(weight, places, factor) if np.array_equal(flat[places] * factor, difference) else None
    return None
