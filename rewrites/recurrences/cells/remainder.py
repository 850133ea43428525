"""The part of a body that stays beside a cell: it scans the values that the native node computes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import nodes_behind, reads
from rewrites.graph.values import through_identity
from rewrites.loops import ScanView, State
from rewrites.recurrences.cells.cell import Cell, source_of
from rewrites.recurrences.cells.masks import CellMatch, Mask

__all__ = ["Remainder", "remainder"]


@dataclass(frozen=True)
class Remainder:
    """The rest of the body.

    ``states``: those that stay. ``after``: values that equal the next hidden state. ``elsewhere``: values that do so in rows that
    take the step, and are constant in others. ``followers``: states that keep the last hidden state, but have initial values of
    their own. ``choices``: Where nodes, each with the index of an operand that the next hidden state may replace.
    ``needs_previous``: which of the hidden state and the followers are read as they were before the step.
    """

    states: tuple[State, ...]
    after: tuple[ir.Value, ...]
    elsewhere: Mapping[ir.Value, np.ndarray] = field(default_factory=dict)
    followers: tuple[State, ...] = ()
    choices: tuple[tuple[ir.Node, int], ...] = ()
    needs_previous: tuple[State, ...] = ()


def remainder(loop: ScanView, match: CellMatch) -> Remainder | None:
    """Return what stays beside the cell; None if that needs the cell state under a mask.

    A cell state that is needed in each step stays a state: little of it depends on itself once all hidden states are known.
    """
    cell, mask = match.cell, match.mask
    copied = through_identity(cell.hidden.next)
    assert copied is not None
    after, elsewhere = [copied, cell.hidden.next], dict[ir.Value, np.ndarray]()
    others = [state for state in loop.states if state not in cell.states]
    followers = () if mask is None else tuple(state for state in others if _follows(state, cell, mask))
    choices = [] if mask is None else _choices(loop, cell, mask)
    for value in (value for node in loop.body for value in node.outputs if value not in after):
        if not match.reading.are_same(value, cell.hidden.next):
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
    computed = {*after, *elsewhere, *(state.next for state in followers)}
    wanted = [*(output.inner for output in loop.scan_outputs), *(state.next for state in states)]
    needed = _read_by(wanted, loop, computed, choices)
    if cell.cell is not None and needed & {cell.cell.inner, cell.cell.next}:
        if mask is not None:
            return None
        states = (*states, cell.cell)
        needed = _read_by([*wanted, cell.cell.next], loop, computed, choices)
    previous = tuple(state for state in (cell.hidden, *followers) if state.inner in needed)
    used = [value for value in after if value in (copied, cell.hidden.next) or value in needed]
    elsewhere = {value: numbers for value, numbers in elsewhere.items() if value in needed}
    return Remainder(states, tuple(dict.fromkeys(used)), elsewhere, followers, tuple(choices), previous)


def _follows(state: State, cell: Cell, mask: Mask) -> bool:
    same_rows = mask.active.dims.get(source_of(state)) == mask.active.dims[source_of(cell.hidden)]
    return same_rows and mask.active.are_same(state.next, cell.hidden.next) and mask.keeps(state)


def _choices(loop: ScanView, cell: Cell, mask: Mask) -> list[tuple[ir.Node, int]]:
    """Find Where nodes that choose the unmasked next hidden state in rows that take the step."""
    behind = set(nodes_behind(loop.body, [cell.hidden.next]))
    choices = []
    for node in loop.body:
        if node.op_type != "Where" or node in behind or node.inputs[0] not in mask.active.decided:
            continue
        outcome = mask.active.abstract(node.inputs[0])
        assert isinstance(outcome, np.ndarray)
        index = 1 if outcome.item() else 2
        value = node.inputs[index]
        if value is not None and mask.active.are_same(value, cell.hidden.next, axes=True):
            choices.append((node, index))
    return choices


def _read_by(
    wanted: Sequence[ir.Value], loop: ScanView, computed: set[ir.Value], choices: Sequence[tuple[ir.Node, int]]
) -> set[ir.Value]:
    """Return ``wanted`` and what it is computed from, as far as the values ``computed`` by the native node."""
    waiting, needed, chosen = list(wanted), set[ir.Value](), dict(choices)
    while waiting:
        value = waiting.pop()
        if value in needed:
            continue
        needed.add(value)
        node = value.producer()
        if value in computed or through_identity(value) in computed or node is None or node.graph is not loop.body:
            continue
        skipped = node.inputs[chosen[node]] if node in chosen else None
        waiting.extend(each for each in reads(node) if each is not skipped)
    return needed
