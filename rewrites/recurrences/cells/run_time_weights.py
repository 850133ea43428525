"""Weights that are computed or fed when the model runs: which of a cell's numbers is which of theirs.

    body reads W, which is an input of the model    ->    LSTM(x, Transpose(Slice(W)), ...)

The body is read with numbers in place of such weights, and once more for each of them with its numbers changed. A number of the
cell that changes by s times what one of theirs does is s times that one, plus what else it is. All numbers are whole and the
changes odd, so that nothing is rounded or taken for another; a last reading with new numbers confirms the result.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import static_dims
from rewrites.loops import ScanView, captured_values
from rewrites.recurrences.cells.cell import ARRAYS, Cell
from rewrites.recurrences.cells.recipes import Numbers, Piece, Recipe
from rewrites.recurrences.constants import Constants

__all__ = ["cells_of_run_time_weights", "run_time_weights"]

_MOST_WEIGHTS = 16
_MOST_NUMBERS = 1 << 21
_LARGEST = 1 << 28
_SPACING = 61
_FACTORS = (1.0, -1.0, 2.0, 0.5, -2.0, -0.5)

_STRUCTURE = ("op_type", "hidden", "cell", "sources", "functions", "linear_before_reset", "input_forget")

_Found = tuple[Cell, Any]


def run_time_weights(loop: ScanView, opset: int) -> list[ir.Value]:
    """Return the captured tensors of known shapes that may be weights, and are no constants."""
    constants, found = Constants(opset), list[ir.Value]()
    for value in captured_values(loop.body):
        dims = static_dims(value)
        if value.dtype is None or not value.dtype.is_floating_point() or dims is None or constants.of(value) is not None:
            continue
        if 0 not in dims:
            found.append(value)
    numbers = sum(math.prod(static_dims(value) or ()) for value in found)
    return found if len(found) <= _MOST_WEIGHTS and numbers <= _MOST_NUMBERS else []


def cells_of_run_time_weights(weights: Sequence[ir.Value], find: Callable[[Numbers], list[_Found]]) -> Iterator[_Found]:
    """Return the cells that the body is whatever the ``weights`` hold; ``find`` gives those it is with numbers in their place.

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


def _recipes(cell: Cell, others: Sequence[Cell], base: Numbers, changes: Numbers, last: Numbers) -> dict[str, Recipe] | None:
    """Return how the arrays of ``cell`` come about, from what they are in ``others``: one for each change, and the last."""
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
    """Return whole numbers for each weight, in float64."""
    rng = np.random.default_rng(seed)
    return {weight: np.asarray(rng.integers(1, _LARGEST, static_dims(weight)).astype(np.float64)) for weight in weights}


def _changes(weights: Sequence[ir.Value]) -> dict[ir.Value, np.ndarray]:
    """Return odd numbers for each weight, in float64, of which each tells its place."""
    rng = np.random.default_rng(3)
    made = {}
    for weight in weights:
        dims = static_dims(weight) or ()
        places = np.arange(math.prod(dims)).reshape(dims)
        made[weight] = np.asarray((2 * (places * _SPACING + rng.integers(0, _SPACING, dims)) + 1).astype(np.float64))
    return made


def _alike(one: Cell, other: Cell) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in _STRUCTURE) and all(
        np.shape(getattr(one, name)) == np.shape(getattr(other, name)) for name in ARRAYS
    )


def _recipe(array: np.ndarray, changed: Numbers, base: Numbers, changes: Numbers, block: int) -> Recipe | None:
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


def _block(array: np.ndarray, changed: Numbers, base: Numbers, changes: Numbers) -> tuple[tuple[Piece, ...], np.ndarray] | None:
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
