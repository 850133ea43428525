"""Find the recurrent cells in a loop's body, including cells with masks or run-time weights.

    h' = f(x @ W + h @ R + b)               is an Elman RNN; GRUs and LSTMs are in ``gated_cells``
    body reads W, an input of the model     ->    LSTM(x, Transpose(Slice(W)), ...)

Run-time weights are computed or fed in each run. To find which element of a weight becomes which element of the cell's arrays, the
body is read several times, each time with assumed integers as weights:

* First with random integers.
* Then once for each weight, with a different odd integer added to each element of this weight. Suppose that an element of an array
  changes by s times one of these integers. Then the array element is s times the weight element to which this integer was added,
  plus a term that does not depend on the weight.
* Finally with new random integers, which confirm the result.

Integers are used because they avoid rounding.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.components import Components, find_components
from rewrites.graph.values import static_dims
from rewrites.loops import ScanView, State, captured_values
from rewrites.recurrences.cells.cell import ARRAYS, Cell, Numbers, Piece, Recipe
from rewrites.recurrences.cells.gated_cells import gru, lstm
from rewrites.recurrences.cells.gates import Candidate, gate
from rewrites.recurrences.cells.interpretation import Interpretation
from rewrites.recurrences.cells.masks import CellMatch, masks_of
from rewrites.recurrences.cells.polynomial import Polynomial, TooComplex
from rewrites.recurrences.constants import ConstantReader

__all__ = ["find_cells"]

_MOST_WEIGHTS = 16
_MOST_NUMBERS = 1 << 21
_LARGEST = 1 << 28
_SPACING = 61
_FACTORS = (1.0, -1.0, 2.0, 0.5, -2.0, -0.5)

_STRUCTURE = ("op_type", "hidden", "cell", "sources", "functions", "linear_before_reset", "input_forget")


def find_cells(loop: ScanView, opset: int) -> Iterator[CellMatch]:
    """Yield the cells that are recognised in the body.

    Cells that have no mask and no run-time weights come first.
    """

    def plain(numbers: Numbers) -> list[CellMatch]:
        reading = Interpretation.of_body(loop, opset, numbers=numbers)
        return [CellMatch(cell, reading) for cell in _cells(reading)]

    def masked(numbers: Numbers) -> list[CellMatch]:
        matches = (CellMatch(cell, mask.active, mask) for mask in masks_of(loop, opset, numbers) for cell in _cells(mask.active))
        return [match for match in matches if match.keeps_states()]

    yield from plain({})
    yield from masked({})
    if weights := _run_time_weights(loop, opset):
        yield from _cells_of_weights(weights, plain)
        yield from _cells_of_weights(weights, masked)


def _cells(reading: Interpretation) -> Iterator[Cell]:
    """Yield the RNN, GRU and LSTM cells that compute the next states of the loop.

    A state may be the hidden state of several of these cells.
    """
    nexts: dict[State, Polynomial] = {}
    for state in reading.loop.states:
        features, inner = reading.features(state.next), reading.features(state.inner)
        whole = None if features is None or inner is None or features.shape != inner.shape else features.whole()
        if whole is not None:
            nexts[state] = whole
    components = find_components(reading.loop)
    inputs = tuple((key, scanned.width) for key, scanned in reading.inputs)
    for state, polynomial in nexts.items():
        candidate = Candidate(reading, state, polynomial, inputs)
        others = (other for other in _partners(components, state) if other in nexts)
        try:
            cells = [_elman(candidate), gru(candidate), *(lstm(candidate, other, nexts[other]) for other in others)]
        except TooComplex:
            continue
        yield from (cell.without_idle_inputs() for cell in cells if cell is not None)


def _elman(candidate: Candidate) -> Cell | None:
    """Return the Elman RNN whose hidden state is the state of ``candidate``, or None.

    If f is linear, R must have no zeros. Suppose that the weight from unit j to unit i is 0. The body may then compute unit i
    without reading unit j. The native node reads unit j and multiplies it by 0. If unit j is infinite, unit i becomes NaN.
    """
    activation = gate(candidate.next)
    weights = None if activation is None else candidate.weights(activation.of)
    if activation is None or weights is None or not weights.r.any():
        return None
    if activation.name == "Affine" and candidate.size > 1 and (weights.r == 0).any():
        return None
    return candidate.cell("RNN", [weights], (activation.function,))


def _partners(components: Components, state: State) -> list[State]:
    """Return the states that may be the cell state of an LSTM with the hidden state ``state``.

    * Each state that depends on ``state`` and on which ``state`` depends.
    * Each state that is read to compute the next ``state``, if it is in no cycle of dependencies with another state.

    Other pairs are skipped, which saves time in loops of many layers.
    """
    behind, members = components.components_of_value, components.members
    sources = behind.get(state.next, 0)
    own = next(group for group in members if state in group)
    alone = [group[0] for group in members if len(group) == 1 and behind[group[0].inner] & sources]
    return [other for other in dict.fromkeys([*own, *alone]) if other is not state]


def _run_time_weights(loop: ScanView, opset: int) -> tuple[ir.Value, ...]:
    """Return the captured tensors that may be run-time weights. Return () if there are too many.

    These are tensors of floats that have known shapes, but are not constant.
    """
    constants, weights = ConstantReader(opset), list[ir.Value]()
    for value in captured_values(loop.body):
        dims = static_dims(value)
        if value.dtype is None or not value.dtype.is_floating_point() or dims is None or constants.of(value) is not None:
            continue
        if 0 not in dims:
            weights.append(value)
    numbers = sum(math.prod(static_dims(value) or ()) for value in weights)
    return tuple(weights) if len(weights) <= _MOST_WEIGHTS and numbers <= _MOST_NUMBERS else ()


def _cells_of_weights(weights: tuple[ir.Value, ...], find: Callable[[Numbers], list[CellMatch]]) -> Iterator[CellMatch]:
    """Yield the cells that are recognised independently of the contents of ``weights``.

    ``find`` takes assumed contents of the weights, and returns the cells that are recognised with these contents.
    """
    base, last = _numbers(weights, 1), _numbers(weights, 2)
    matches = find(base)
    if not matches:
        return
    changes = _changes(weights)
    others = [find(base | {weight: np.asarray(base[weight] + changes[weight])}) for weight in weights]
    others.append(find(last))
    for index, match in enumerate(matches):
        same = [other[index].cell for other in others if index < len(other) and _have_same_structure(match.cell, other[index].cell)]
        recipes = _recipes(match.cell, same, base, changes, last) if len(same) == len(others) else None
        if recipes is not None:
            yield replace(match, cell=replace(match.cell, recipes=recipes), weights=weights)


def _recipes(cell: Cell, others: Sequence[Cell], base: Numbers, changes: Numbers, last: Numbers) -> dict[str, Recipe] | None:
    """Return the recipes, by array name, of the arrays of ``cell`` that depend on run-time weights.

    Return None if one of these arrays cannot be assembled from the weights.

    Args:
        cell: The cell as read with the weights ``base``.
        others: The same cell as read with other weights: once for each weight, with ``changes`` added to this weight only, and at
            the end once with ``last``.
        base: The first contents of the weights.
        changes: The integers that are added to each weight.
        last: New contents of all weights, to confirm the recipes.
    """
    recipes = dict[str, Recipe]()
    for name in ARRAYS:
        array, *changed, final = (getattr(each, name) for each in (cell, *others))
        if array is None or array.size == 0:
            continue
        blocks = 3 if name == "peepholes" else len(cell.w) // cell.size
        recipe = _recipe(array, dict(zip(changes, changed, strict=True)), base, changes, len(array) // blocks)
        if recipe is None or not np.array_equal(recipe.value(last), final):
            return None
        if any(pieces for pieces, _ in recipe.blocks):
            recipes[name] = recipe
    return recipes


def _numbers(weights: Sequence[ir.Value], seed: int) -> dict[ir.Value, np.ndarray]:
    """Return random integers for each weight, in float64."""
    rng = np.random.default_rng(seed)
    return {weight: np.asarray(rng.integers(1, _LARGEST, static_dims(weight)).astype(np.float64)) for weight in weights}


def _changes(weights: Sequence[ir.Value]) -> dict[ir.Value, np.ndarray]:
    """Return odd integers for each weight, in float64. Each integer identifies its index in the weight."""
    rng = np.random.default_rng(3)
    changes = {}
    for weight in weights:
        dims = static_dims(weight) or ()
        indices = np.arange(math.prod(dims)).reshape(dims)
        changes[weight] = np.asarray((2 * (indices * _SPACING + rng.integers(0, _SPACING, dims)) + 1).astype(np.float64))
    return changes


def _have_same_structure(cell: Cell, other: Cell) -> bool:
    return all(getattr(cell, name) == getattr(other, name) for name in _STRUCTURE) and all(
        np.shape(getattr(cell, name)) == np.shape(getattr(other, name)) for name in ARRAYS
    )


def _recipe(array: np.ndarray, changed: Numbers, base: Numbers, changes: Numbers, block: int) -> Recipe | None:
    """Return a recipe that assembles ``array`` from run-time weights, or None if there is none.

    First try to assemble the whole array as one block, then as several blocks of ``block`` rows. If both are possible, return the
    recipe that gathers fewer elements one by one.
    """
    recipes = list[Recipe]()
    for size in dict.fromkeys((len(array), block)):
        cuts = [slice(start, start + size) for start in range(0, len(array), size)]
        blocks = [_block(array[rows], {weight: other[rows] for weight, other in changed.items()}, base, changes) for rows in cuts]
        known = tuple(each for each in blocks if each is not None)
        if len(known) == len(blocks):
            recipes.append(Recipe(known))
            if not recipes[-1].work[1]:
                break
    return min(recipes, key=lambda recipe: recipe.work[1], default=None)


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
    """Return the piece of ``weight`` that changes by ``difference`` if the weight changes by ``change``.

    ``change`` holds the integer that was added to each element of the weight. Return None if there is no such piece.
    """
    flat, first = change.reshape(-1), difference.reshape(-1)[0]
    for factor in _FACTORS:
        if (first / factor) % 2 != 1 or not 0 < first / factor <= flat[-1]:
            continue
        indices = np.clip((difference / factor - 1) // (2 * _SPACING), 0, len(flat) - 1).astype(np.int64)
        return Piece(weight, indices, factor) if np.array_equal(flat[indices] * factor, difference) else None
    return None
