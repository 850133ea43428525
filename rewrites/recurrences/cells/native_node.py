"""Write a cell as a native RNN, GRU or LSTM node.

Without a mask, each row of the batch runs all steps. With a mask, each row runs only the steps that it takes. The lists of
activation parameters have an entry only for activations that have the parameter, because onnxruntime misreads padded lists.
``layout`` is never written, because onnxruntime rejects it.

    LSTM(xs, ...)    ->    If(xs is not empty) then LSTM(xs, ...) else an empty sequence, and the initial states

onnxruntime's recurrent nodes abort or return uninitialised memory if the input has no steps or no rows (an empty batch). Only an
RNN without a mask can run without rows. If an empty input is possible, an If runs the node only on inputs that are not empty.
For an empty batch, the other branch returns the same result as the loop. For zero steps, onnxruntime's Scan would fail; the branch
returns the result that the ONNX specification defines for the loop.

    steps of a row   a . b c .      ->   a b c    through the node with sequence length 3    ->   h1 h1 h2 h3 h3

With a mask, a row takes only some steps. A stable sort moves these steps to the start, and the node's results are moved back to the
original steps. In the steps before the first step that it takes, a row has its initial state. The results equal those of the loop
for every mask, because no result beyond the sequence length of a row is used. If the mask is the comparison of step numbers with
lengths, these lengths become the ``sequence_lens`` of the node, and nothing is sorted.

Works around ORT-RECURRENT-LAYOUT, ORT-RNN-NO-STEPS, ORT-GRU-NO-STEPS, ORT-LSTM-NO-STEPS, ORT-RECURRENT-NO-ROWS and
ORT-RECURRENT-EMPTY-ROW.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.graph.branches import write_if
from rewrites.graph.builder import Builder
from rewrites.ops.rnn.functions import compact_parameters
from rewrites.ops.versions import concat, count_up, reshape, shape_of, slice_axis, squeeze, unsqueeze, where
from rewrites.recurrences.cells.cell import Cell
from rewrites.recurrences.cells.features import Dims
from rewrites.recurrences.cells.prefix_masks import lengths_behind

__all__ = ["NativeResults", "has_taken_step", "join_rows", "split_rows", "write_guarded", "write_native"]

_INT64, _INT32 = int(ir.DataType.INT64), int(ir.DataType.INT32)


@dataclass(frozen=True)
class NativeResults:
    """The results of a native node.

    Args:
        sequence: The hidden states of all steps, [steps, ..., hidden].
        states: The final states in the shapes of the loop's states, the hidden state first.
    """

    sequence: ir.Value
    states: Sequence[ir.Value]


def write_native(
    b: Builder, cell: Cell, inputs: list[ir.Value], lead: Dims, *, reverse: bool, between_reversals: bool, mask: ir.Value | None
) -> NativeResults:
    """Write ``cell`` as a native node, and return its results in the order of the steps.

    The returned final states are [*lead, hidden].

    Args:
        b: The builder that gets the nodes.
        cell: The cell.
        inputs: The values of the cell's sources, each [steps, *lead, width].
        lead: The sizes of the axes that index the rows. If there are several axes, at most one size may be unknown.
        reverse: True if the loop runs from the last step to the first.
        between_reversals: True to prefer a forward node between two reversals to a reverse node. Without effect if there is a mask.
        mask: A bool tensor [steps, *lead, 1] that is True if the row takes the step. Its axes from ``lead`` may also have size 1.
            None if each row takes all steps.
    """
    turns = reverse and between_reversals and mask is None
    cast = [_reversed(b, each) if turns else each for each in inputs]
    cast = [each if each.dtype == cell.dtype else b.op("Cast", each, to=int(cell.dtype)) for each in cast]
    x = join_rows(b, concat(b, cast, len(lead) + 1), lead, 1, sum(width for _, width in cell.sources))
    initial = [join_rows(b, state.initial, lead, 0, cell.size) for state in cell.states]
    finals: Iterable[ir.Value]
    lengths = None if mask is None else lengths_behind(mask, b.opset)
    if mask is None:
        sequence, finals = _write_rows(b, cell, x, initial, reverse and not turns)
    elif lengths is not None:
        sequence, finals = _write_first_steps(b, cell, x, initial, reverse, mask, lengths)
    else:
        sequence, finals = _write_running_steps(b, cell, x, initial, reverse, mask)
    states = [split_rows(b, final, lead, 0, cell.size) for final in finals]
    sequence = split_rows(b, sequence, lead, 1, cell.size)
    return NativeResults(_reversed(b, sequence) if turns else sequence, states)


def _reversed(b: Builder, steps: ir.Value) -> ir.Value:
    return slice_axis(b, steps, 0, -1, -(2**63), -1)


def _write_running_steps(
    b: Builder, cell: Cell, x: ir.Value, initial: list[ir.Value], backwards: bool, mask: ir.Value
) -> tuple[ir.Value, Iterable[ir.Value]]:
    """Write ``cell`` so that each row runs only the steps in which ``mask`` is True.

    Return the sequence and the final states.
    """
    steps, rows = shape_of(b, x, 0), shape_of(b, x, 1)
    spread = b.op("Expand", reshape(b, mask, [0, -1]), concat(b, [b.const([1]), rows], 0))
    runs = b.op("Cast", spread, to=_INT64)
    counts = b.op("CumSum", runs, b.const(0), reverse=1 if backwards else None)
    total = slice_axis(b, counts, 0, 0, 1) if backwards else slice_axis(b, counts, 0, -1, 2**63 - 1)
    columns = b.op("Expand", unsqueeze(b, count_up(b, rows), [0]), b.op("Shape", runs))
    numbers = unsqueeze(b, count_up(b, steps), [1])
    keys = b.op("Sub", b.op("Mul", runs, steps), numbers)  # puts steps that run first, otherwise keeps the order
    _, order = b.ops("TopK", [keys, steps], 2, axis=0)
    together = b.op("GatherND", x, _indices(b, order, columns))
    lengths = squeeze(b, total, [0])
    sequence, finals = _write_rows(b, cell, together, initial, backwards, b.op("Cast", lengths, to=_INT32))
    first = unsqueeze(b, initial[0], [0])
    if backwards:
        after = b.op("Sub", total, counts)
        at = where(b, b.op("Less", after, total), after, steps)
        table = concat(b, [sequence, first], 0)
    else:
        at, table = counts, concat(b, [first, sequence], 0)
    sequence = b.op("GatherND", table, _indices(b, at, columns))
    return sequence, _states_after(b, lengths, initial, finals)


def _write_first_steps(
    b: Builder, cell: Cell, x: ir.Value, initial: list[ir.Value], backwards: bool, mask: ir.Value, declared: ir.Value
) -> tuple[ir.Value, Iterable[ir.Value]]:
    """Write ``cell`` so that each row runs only its first steps. Return the sequence and the final states.

    ``declared``: the number of these steps for each row. Negative numbers count as 0, and too large numbers as all steps.
    """
    steps, rows = shape_of(b, x, 0), shape_of(b, x, 1)
    flat = b.op("Cast", reshape(b, declared, [-1]), to=_INT64)
    flat = where(b, b.op("Less", flat, steps), flat, steps)
    lengths = b.op("Expand", where(b, b.op("Less", flat, b.const([0])), b.const([0]), flat), rows)
    sequence, finals = _write_rows(b, cell, x, initial, backwards, b.op("Cast", lengths, to=_INT32))
    states = _states_after(b, lengths, initial, finals)
    idle = unsqueeze(b, initial[0] if backwards else states[0], [0])
    return where(b, reshape(b, mask, [0, -1, 1]), sequence, idle), states


def _states_after(b: Builder, lengths: ir.Value, initial: list[ir.Value], finals: Iterable[ir.Value]) -> list[ir.Value]:
    """Return the final states of the node, replaced by the initial states in rows of length 0."""
    ran = unsqueeze(b, b.op("Less", b.const([0]), lengths), [1])
    return [where(b, ran, final, state) for state, final in zip(initial, finals, strict=True)]


def has_taken_step(b: Builder, mask: ir.Value, backwards: bool) -> ir.Value:
    """Return a bool tensor that is True in each step in which the row takes, or has already taken, a step.

    ``mask`` is [steps, ..., 1], and so is the result. ``backwards``: True if the loop runs from the last step to the first.
    """
    runs = b.op("CumSum", b.op("Cast", mask, to=_INT64), b.const(0), reverse=1 if backwards else None)
    return b.op("Less", b.const(0), runs)


def _indices(b: Builder, first: ir.Value, second: ir.Value) -> ir.Value:
    return concat(b, [unsqueeze(b, first, [2]), unsqueeze(b, second, [2])], 2)


def write_guarded(b: Builder, cell: Cell, some_input: ir.Value, write: Callable[[Builder], NativeResults]) -> NativeResults:
    """Write an If that runs the nodes of ``cell`` only if ``some_input`` is not empty.

    ``write`` writes these nodes to a builder. ``some_input`` is [steps, ..., width]. If it is empty, the If returns an empty
    sequence and the initial states.
    """
    is_some = b.op("Greater", b.op("Size", some_input), b.const(0))
    then_part, else_part = b.another(), b.another()
    native = write(then_part)
    sizes = slice_axis(else_part, else_part.op("Shape", some_input), 0, 0, -1)
    shape = concat(else_part, [sizes, b.const([cell.size])], 0)
    empty = else_part.op("ConstantOfShape", shape, value=ir.tensor(np.zeros(1, cell.dtype.numpy())))
    initial = [else_part.op("Identity", state.initial) for state in cell.states]
    branches = (then_part, [native.sequence, *native.states]), (else_part, [empty, *initial])
    sequence, *states = write_if(b, is_some, *branches, cell.hidden.next.name)
    return NativeResults(sequence, states)


def _write_rows(
    b: Builder, cell: Cell, x: ir.Value, initial: list[ir.Value], reverse: bool, lengths: ir.Value | None = None
) -> tuple[ir.Value, list[ir.Value]]:
    """Write the node for the input ``x`` [steps, rows, width]. Return the sequence and the final states.

    ``initial``: the initial states, each [rows, hidden]. ``lengths``: the number of steps of each row, int32 [rows], or None if
    each row runs all steps.
    """

    def array(name: str) -> np.ndarray:
        numbers: np.ndarray = getattr(cell, name)
        return numbers.astype(cell.dtype.numpy())

    def weights(*names: str) -> ir.Value:
        if not any(name in cell.recipes for name in names):
            return b.const(np.concatenate([array(name) for name in names])[None])
        parts = [cell.recipes[name].write(b, cell.dtype) if name in cell.recipes else b.const(array(name)) for name in names]
        return unsqueeze(b, concat(b, parts, 0), [0])

    operands: list[ir.Value | None] = [x, weights("w"), weights("r"), weights("wb", "rb") if cell.has_bias else None, lengths]
    operands += [unsqueeze(b, state, [0]) for state in initial]
    if cell.peepholes is not None:
        operands.append(weights("peepholes"))
    alphas, betas = compact_parameters(cell.functions)
    sequence, *states = b.ops(
        cell.op_type,
        operands,
        1 + len(initial),
        hint=cell.hidden.next.name,
        hidden_size=cell.size,
        direction="reverse" if reverse else None,
        activations=None if cell.has_default_functions else [function.name for function in cell.functions],
        activation_alpha=alphas or None,
        activation_beta=betas or None,
        clip=cell.clip,
        linear_before_reset=1 if cell.linear_before_reset else None,
        input_forget=1 if cell.input_forget else None,
    )
    finals = [squeeze(b, value, [0]) for value in states]
    return squeeze(b, sequence, [1]), finals


def join_rows(b: Builder, value: ir.Value, lead: Dims, before: int, width: int) -> ir.Value:
    """Merge the axes of ``value`` with the sizes ``lead`` into one axis of rows.

    ``before``: the number of axes before these axes. ``width``: the size of the last axis.
    """
    if len(lead) == 0:
        return unsqueeze(b, value, [before])
    count = math.prod(dim for dim in lead if isinstance(dim, int)) if all(isinstance(dim, int) for dim in lead) else -1
    return value if len(lead) == 1 else reshape(b, value, [*[0] * before, count, width])


def split_rows(b: Builder, value: ir.Value, lead: Dims, before: int, width: int) -> ir.Value:
    """Split the axis of rows of ``value`` into axes with the sizes ``lead``.

    ``before``: the number of axes before the axis of rows. ``width``: the size of the last axis.
    """
    if len(lead) == 0:
        return squeeze(b, value, [before])
    sizes = [dim if isinstance(dim, int) else -1 for dim in lead]
    return value if len(lead) == 1 else reshape(b, value, [*[0] * before, *sizes, width])
