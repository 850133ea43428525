"""What of a body is left beside a cell: values that the native node gives are scanned there, and everything else stays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import nodes_behind, reads
from rewrites.graph.values import through_identity
from rewrites.loops import ScanView, State
from rewrites.recurrences.cells.cell import Cell, source_of
from rewrites.recurrences.cells.interpretation import Interpretation
from rewrites.recurrences.cells.masks import Mask

__all__ = ["Remainder", "remainder"]


@dataclass(frozen=True)
class Remainder:
    """What the rest of the body is.

    ``states``: those that stay. ``after``: values that are what the hidden state becomes. ``elsewhere``: values that are so in rows
    that take the step, and constant in others. ``followers``: states that keep the last hidden state, from their own beginning.
    ``choices``: Where nodes, each with the place of an operand for which what the hidden state becomes may be put.
    ``needs_previous``: which of the hidden state and the followers are read as they were before the step.
    """

    states: tuple[State, ...]
    after: tuple[ir.Value, ...]
    elsewhere: Mapping[ir.Value, np.ndarray] = field(default_factory=dict)
    followers: tuple[State, ...] = ()
    choices: tuple[tuple[ir.Node, int], ...] = ()
    needs_previous: tuple[State, ...] = ()


def remainder(loop: ScanView, cell: Cell, reading: Interpretation, mask: Mask | None) -> Remainder | None:
    """Return what is left beside ``cell``, found in ``reading``; None where that needs the cell state under a mask.

    A cell state that is needed in each step stays a state: with the hidden states of all steps given, little of it depends on it.
    """
    copied = through_identity(cell.hidden.next)
    assert copied is not None
    after, elsewhere = [copied, cell.hidden.next], dict[ir.Value, np.ndarray]()
    others = [state for state in loop.states if state not in cell.states]
    followers = () if mask is None else tuple(state for state in others if _follows(state, cell, mask))
    choices = [] if mask is None else _choices(loop, cell, mask)
    for value in (value for node in loop.body for value in node.outputs if value not in after):
        if not reading.are_same(value, cell.hidden.next):
            continue
        if mask is None:
            after.append(value)
        else:
            otherwise = mask.otherwise(value)
            if isinstance(otherwise, np.ndarray):
                elsewhere[value] = otherwise
            elif otherwise == cell.hidden:
                after.append(value)
    states = tuple(state for state in others if state not in followers)
    given = {*after, *elsewhere, *(state.next for state in followers)}
    wanted = [*(output.inner for output in loop.scan_outputs), *(state.next for state in states)]
    seen = _read_by(wanted, loop, given, choices)
    if cell.cell is not None and seen & {cell.cell.inner, cell.cell.next}:
        if mask is not None:
            return None
        states = (*states, cell.cell)
        seen = _read_by([*wanted, cell.cell.next], loop, given, choices)
    previous = tuple(state for state in (cell.hidden, *followers) if state.inner in seen)
    used = [value for value in after if value in (copied, cell.hidden.next) or value in seen]
    elsewhere = {value: numbers for value, numbers in elsewhere.items() if value in seen}
    return Remainder(states, tuple(dict.fromkeys(used)), elsewhere, followers, tuple(choices), previous)


def _follows(state: State, cell: Cell, mask: Mask) -> bool:
    alike = mask.taken.dims.get(source_of(state)) == mask.taken.dims[source_of(cell.hidden)]
    return alike and mask.taken.are_same(state.next, cell.hidden.next) and mask.keeps(state)


def _choices(loop: ScanView, cell: Cell, mask: Mask) -> list[tuple[ir.Node, int]]:
    """Find Where nodes that take what the hidden state becomes in rows that take the step, though it is not yet masked."""
    behind = set(nodes_behind(loop.body, [cell.hidden.next]))
    found = []
    for node in loop.body:
        if node.op_type != "Where" or node in behind or node.inputs[0] not in mask.taken.decided:
            continue
        outcome = mask.taken.meaning(node.inputs[0])
        assert isinstance(outcome, np.ndarray)
        place = 1 if outcome.item() else 2
        value = node.inputs[place]
        if value is not None and mask.taken.are_same(value, cell.hidden.next, axes=True):
            found.append((node, place))
    return found


def _read_by(
    wanted: Sequence[ir.Value], loop: ScanView, given: set[ir.Value], choices: Sequence[tuple[ir.Node, int]]
) -> set[ir.Value]:
    """Return ``wanted`` and what it is computed from, up to what is ``given``."""
    waiting, seen, chosen = list(wanted), set[ir.Value](), dict(choices)
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        node = value.producer()
        if value in given or through_identity(value) in given or node is None or node.graph is not loop.body:
            continue
        skipped = node.inputs[chosen[node]] if node in chosen else None
        waiting.extend(each for each in reads(node) if each is not skipped)
    return seen
