"""Write the native node of a cell, and stacks of the body values that it computes.

The loop that remains scans these stacks.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import nodes_computing, reads
from rewrites.base import since
from rewrites.base.not_applicable import NotApplicable
from rewrites.fission.stacks import Stacks
from rewrites.graph.branches import has_steps
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import rank_of, through_identity
from rewrites.loops import ScanView, State
from rewrites.ops.versions import concat, reshape, slice_axis, unsqueeze, where
from rewrites.recurrences.cells.cell import Cell, source_of
from rewrites.recurrences.cells.features import Dims, Features
from rewrites.recurrences.cells.interpretation import Interpretation
from rewrites.recurrences.cells.masks import CellMatch, Mask
from rewrites.recurrences.cells.native_node import NativeResults, has_taken_step, join_rows, split_rows, write_guarded, write_native
from rewrites.recurrences.cells.suitability import reverses_slowly

__all__ = ["NodeValues", "Remainder", "remainder", "write_node"]


@dataclass
class NodeValues:
    """The body values that the native node computes, and pairs (loop output, value that replaces it)."""

    body: list[ir.Value]
    results: list[tuple[ir.Value | None, ir.Value]]


@dataclass(frozen=True)
class Remainder:
    """The part of a loop that remains when a native node replaces a cell.

    Args:
        states: The states that remain.
        equal_to_next: The body values that equal the next hidden state.
        equal_when_active: Body values that equal the next hidden state in rows that take the step, and a constant in other rows.
        followers: The states that equal the hidden state except for their initial values.
        choices: Pairs of a Where node and the index of its operand that is replaced by the next hidden state.
        needs_previous: The states, out of the hidden state and the followers, whose old values the remaining loop reads.
    """

    states: tuple[State, ...]
    equal_to_next: tuple[ir.Value, ...]
    equal_when_active: Mapping[ir.Value, np.ndarray] = field(default_factory=dict)
    followers: tuple[State, ...] = ()
    choices: tuple[tuple[ir.Node, int], ...] = ()
    needs_previous: tuple[State, ...] = ()


def remainder(loop: ScanView, match: CellMatch) -> Remainder | None:
    """Return the part of the loop that remains when a native node replaces the cell.

    If this part needs the cell state in each step, the cell state remains a state of the loop. This is cheap, because the remaining
    loop scans the hidden states. But for a cell with a mask this is not supported, and the function returns None.
    """
    cell, mask = match.cell, match.mask
    copied = through_identity(cell.hidden.next)
    assert copied is not None
    equal_to_next, equal_when_active = [copied, cell.hidden.next], dict[ir.Value, np.ndarray]()
    others = [state for state in loop.states if state not in cell.states]
    followers, choices = tuple[State, ...](), list[tuple[ir.Node, int]]()
    if mask is not None:
        active, rows = mask.active, mask.active.dims[source_of(cell.hidden)]
        same = (state for state in others if active.dims.get(source_of(state)) == rows and mask.keeps(state))
        followers = tuple(state for state in same if active.are_same(state.next, cell.hidden.next))
        choices = _choices(loop, cell, mask)
    for value in (value for node in loop.body for value in node.outputs if value not in equal_to_next):
        if not match.reading.are_same(value, cell.hidden.next):
            continue
        if mask is None:
            equal_to_next.append(value)
        else:
            inactive_value = mask.value_when_inactive(value)
            if isinstance(inactive_value, np.ndarray):
                equal_when_active[value] = inactive_value
            elif inactive_value == cell.hidden:
                equal_to_next.append(value)
    states = tuple(state for state in others if state not in followers)
    computed = {*equal_to_next, *equal_when_active, *(state.next for state in followers)}
    wanted = [*(output.inner for output in loop.scan_outputs), *(state.next for state in states)]
    needed = _needed_values(wanted, loop, computed, choices)
    if cell.cell is not None and needed & {cell.cell.inner, cell.cell.next}:
        if mask is not None:
            return None
        states = (*states, cell.cell)
        needed = _needed_values([*wanted, cell.cell.next], loop, computed, choices)
    previous = tuple(state for state in (cell.hidden, *followers) if state.inner in needed)
    used = [value for value in equal_to_next if value in (copied, cell.hidden.next) or value in needed]
    equal_when_active = {value: numbers for value, numbers in equal_when_active.items() if value in needed}
    return Remainder(states, tuple(dict.fromkeys(used)), equal_when_active, followers, tuple(choices), previous)


def _choices(loop: ScanView, cell: Cell, mask: Mask) -> list[tuple[ir.Node, int]]:
    """Find Where nodes that choose the new hidden state in rows that take the step.

    Return pairs of a node and the index of the operand that the node chooses in these rows.
    """
    behind = set(nodes_computing(loop.body, [cell.hidden.next]))
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


def _needed_values(
    wanted: Sequence[ir.Value], loop: ScanView, computed: set[ir.Value], choices: Sequence[tuple[ir.Node, int]]
) -> set[ir.Value]:
    """Return the body values that are needed to compute ``wanted``, including ``wanted``.

    The native node provides the values ``computed``. ``choices``: pairs of a Where node and the index of an operand to ignore.
    """
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


def write_node(stacks: Stacks, match: CellMatch, rest: Remainder, ctx: Context) -> NodeValues | NotApplicable:
    """Write the native node and return its values, or a reason if the mask or a size is unknown."""
    cell, reading, mask, lead = match.cell, match.reading, match.mask, match.lead
    b, backwards = stacks.build, stacks.backwards
    for value in (*rest.equal_to_next, *rest.equal_when_active):
        if not _can_be_shaped(value, _features(reading, value), lead):
            return NotApplicable(
                "CELL-ROWS", f"the sizes of '{value.name}', which holds the rows of the {cell.op_type}, are not known"
            )
    runs = None if mask is None else _mask_of_all_steps(stacks, mask, len(lead))
    if isinstance(runs, NotApplicable):
        return runs
    inputs = [_source_rows(stacks, reading, key, width, lead) for key, width in cell.sources]
    if not inputs:
        cell, inputs = _with_zero_input(stacks, cell)
    reversals = ctx.opset >= since.SLICE_INPUTS and reverses_slowly(cell, lead, ctx.options)

    def write(part: Builder) -> NativeResults:
        return write_native(part, cell, inputs, lead, reverse=backwards, between_reversals=reversals, mask=runs)

    may_be_empty = _may_be_empty(stacks.loop, cell, lead, runs is not None)
    native = write_guarded(b, cell, inputs[0], write) if may_be_empty else write(b)
    # keep the symbolic sizes of the states, so that loops that scan the results are known to have the same rows
    native.sequence.shape = ir.Shape([None if native.sequence.shape is None else native.sequence.shape[0], *lead, cell.size])
    for final in native.states:
        final.shape = ir.Shape([*lead, cell.size])
    body = list(rest.equal_to_next)
    results: list[tuple[ir.Value | None, ir.Value]] = [*zip([state.final for state in cell.states], native.states, strict=True)]
    for value in rest.equal_to_next:
        stacks.set(value, _reshaped(b, native.sequence, lead, _features(reading, value)))
    for value, numbers in rest.equal_when_active.items():
        assert runs is not None
        constant = b.const(numbers.astype(cell.dtype.numpy()))
        stacks.set(value, _reshaped(b, where(b, runs, native.sequence, constant), lead, _features(reading, value)))
        body.append(value)
    for state in rest.followers:
        assert runs is not None
        first = unsqueeze(b, state.initial, [0])
        stacks.set(state.next, where(b, has_taken_step(b, runs, backwards), native.sequence, first))
        body.append(state.next)
        results.append((state.final, stacks.last(state.next)))
    for state in rest.needs_previous:
        stacks.set(state.inner, stacks.delayed(state))
        body.append(state.inner)
    return NodeValues(list(dict.fromkeys(body)), results)


def _source_rows(stacks: Stacks, reading: Interpretation, key: Hashable, width: int, lead: Dims) -> ir.Value:
    """Return the tensor of the scanned source ``key``, reshaped to [steps, *lead, width].

    Apart from axes of size 1, the leading axes of this tensor must have the sizes ``lead``.
    """
    scanned, own = reading.scanned[key], reading.dims[key]
    value = stacks.ordered(scanned.outer, scanned.reverse)
    return value if own == lead else split_rows(stacks.build, join_rows(stacks.build, value, own, 1, width), lead, 1, width)


def _may_be_empty(loop: ScanView, cell: Cell, lead: Dims, masked: bool) -> bool:
    """Return True if the node may fail, because there may be no steps or no rows (an empty batch)."""
    if not isinstance(loop.steps, int) and not has_steps(loop.node.graph):
        return True
    return (cell.op_type != "RNN" or masked) and any(not isinstance(dim, int) for dim in lead)


def _features(reading: Interpretation, value: ir.Value) -> Features:
    features = reading.features(value)
    assert features is not None
    return features


def _can_be_shaped(value: ir.Value, features: Features, lead: Dims) -> bool:
    """Return True if a stack [steps, *lead, width] can be reshaped to [steps, *axes of ``value``]."""
    axes = [*features.dims, *features.shape]
    rank = rank_of(value)
    unknown = sum(not isinstance(dim, int) for dim in features.dims)
    return (rank is None or rank == len(axes)) and (unknown <= 1 or features.dims == lead)


def _reshaped(b: Builder, stack: ir.Value, lead: Dims, features: Features) -> ir.Value:
    """Reshape ``stack`` from [steps, *lead, width] to [steps, *all axes of ``features``]."""
    same = features.dims == lead
    if same and features.shape == (features.width,):
        return stack
    sizes = [0] * len(lead) if same else [dim if isinstance(dim, int) else -1 for dim in features.dims]
    return reshape(b, stack, [0, *sizes, *features.shape])


def _mask_of_all_steps(stacks: Stacks, mask: Mask, lead: int) -> ir.Value | NotApplicable:
    """Return a bool tensor [steps, ..., 1] that is True if the row takes the step, or a reason."""
    reason = stacks.add_all(nodes_computing(stacks.body, [mask.value]))
    if reason is not None:
        return reason
    missing = lead + 1 - (rank_of(mask.value) or 0)
    runs = stacks.stack_of(mask.value)
    if not mask.outcome:
        runs = stacks.build.op("Not", runs)
    return unsqueeze(stacks.build, runs, list(range(1, 1 + missing))) if missing else runs


def _with_zero_input(stacks: Stacks, cell: Cell) -> tuple[Cell, list[ir.Value]]:
    """Add an input of zeros [steps, ..., 1] to a ``cell`` without inputs: the operators require an input."""
    b, initial = stacks.build, cell.hidden.initial
    assert initial.dtype is not None
    rows = slice_axis(b, b.op("Shape", initial), 0, 0, -1)
    zeros = ir.tensor(np.zeros(1, initial.dtype.numpy()))
    inputs = b.op("ConstantOfShape", concat(b, [stacks.steps, rows, b.const([1])], 0), value=zeros)
    return replace(cell, sources=((("zeros",), 1),), w=np.zeros((len(cell.w), 1))), [inputs]
