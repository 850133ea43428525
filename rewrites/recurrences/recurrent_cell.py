"""A loop that is a recurrent cell becomes the native node.

    Scan(h0, c0, xs) body(h, c, x) => (o * tanh(c2), c2 = f * c + i * g, ...)    ->    LSTM(xs, W, R, B, , h0, c0)

However the cell is written: its values are read as polynomials of activations of affine maps, and the families are read off those.
Conditions: weights are the same in every step and of known shapes; states are tensors of float32 or float16 whose last axis holds
the features; the native node is faster where the model will run; a probe at random points agrees. Rows may keep their states in
some steps, on a condition that is the same for all of a row (opset 11). What else the body computes stays in a loop that scans the
hidden states, for other rules to take apart. Never touches a loop that needs the cell state of each step.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from rewrites.branches import has_steps
from rewrites.builder import Builder
from rewrites.context import Context
from rewrites.dependence import nodes_behind
from rewrites.fission.stacks import Stacks
from rewrites.loops import Loop, LoopView, ScanInput, ScanView, rebuild
from rewrites.moving import remove_nodes
from rewrites.normal_form.dead_code import unread_nodes
from rewrites.normal_form.own_outputs import give_own_nodes
from rewrites.recurrences.cell import Cell, source_of
from rewrites.recurrences.cost import too_slow, turns_slowly
from rewrites.recurrences.empty_sequence import write_guarded
from rewrites.recurrences.families import find_cells
from rewrites.recurrences.interpretation import Interpretation, rows_of
from rewrites.recurrences.masked_steps import has_run, write_masked
from rewrites.recurrences.masks import Mask, masked_cells
from rewrites.recurrences.native import NativeResults, join_rows, part_rows, write_between_reversals, write_native
from rewrites.recurrences.no_input import with_input
from rewrites.recurrences.on_target import not_there
from rewrites.recurrences.probe import probe
from rewrites.recurrences.remainder import Remainder, remainder
from rewrites.recurrences.run_time_weights import cells_of_run_time_weights, run_time_weights
from rewrites.replace import replace_value
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch
from rewrites.spelling import unsqueeze, where
from rewrites.values import rank_of, through_identity

__all__ = ["FAMILY", "NAME", "check"]

NAME = "recurrent-cell"
FAMILY = True
"""It takes a recurrence out of its loop, so that other states are better split off for it."""

_NATIVE_SINCE = 7
_MASKED_SINCE = 11
_FLIPS_SINCE = 10
_PRODUCTS = frozenset({"Einsum", "GRU", "Gemm", "LSTM", "MatMul", "RNN"})


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Look for a cell among the loop's states."""
    if isinstance(loop, LoopView) or loop.batched or not loop.states or ctx.opset < _NATIVE_SINCE:
        return NOTHING_HERE
    axes = [scan.axis for scan in loop.scan_inputs] + [output.axis for output in loop.scan_outputs]
    directions = {scan.reverse for scan in loop.scan_inputs} | {output.reverse for output in loop.scan_outputs}
    if any(axes) or loop.node.meta.get("blocks") or (ctx.opset < _FLIPS_SINCE and len(directions) > 1):
        return NOTHING_HERE
    if not any(node.op_type in _PRODUCTS for node in loop.body):
        return NOTHING_HERE
    reason: NotApplicable = NOTHING_HERE
    for found in _candidates(loop, ctx.opset):
        answer = _fused(loop, found, ctx)
        if isinstance(answer, Patch):
            return answer
        reason = answer
    return reason


@dataclass(frozen=True)
class _Found:
    """A cell, the reading it was found in, and what else it depends on: a mask, tensors known only when the model runs."""

    cell: Cell
    reading: Interpretation
    mask: Mask | None = None
    weights: tuple[ir.Value, ...] = ()


def _candidates(loop: ScanView, opset: int) -> Iterator[_Found]:
    """Give the cells the body may be, the plainest first."""

    def plain(numbers: Mapping[ir.Value, np.ndarray]) -> list[tuple[Cell, tuple[Interpretation, Mask | None]]]:
        reading = Interpretation.of_body(loop, opset, numbers=numbers)
        return [(cell, (reading, None)) for cell in find_cells(reading)]

    def masked(numbers: Mapping[ir.Value, np.ndarray]) -> list[tuple[Cell, tuple[Interpretation, Mask | None]]]:
        return [(cell, (mask.taken, mask)) for cell, mask in masked_cells(loop, opset, numbers)]

    for find in (plain, masked):
        yield from (_Found(cell, reading, mask) for cell, (reading, mask) in find({}))
    weights = tuple(run_time_weights(loop, opset))
    for find in (plain, masked) if weights else ():
        yield from (_Found(cell, reading, mask, weights) for cell, (reading, mask) in cells_of_run_time_weights(weights, find))


def _fused(loop: ScanView, found: _Found, ctx: Context) -> Patch | NotApplicable:
    cell, reading, mask = found.cell, found.reading, found.mask
    obstacle = _obstacle(cell, reading) or not_there(cell, mask is not None, ctx.options.target)
    obstacle = obstacle or too_slow(cell, reading.dims[source_of(cell.hidden)], loop.steps, mask is not None, ctx.options)
    if obstacle is not None:
        return obstacle
    if mask is not None and ctx.opset < _MASKED_SINCE:
        return NotApplicable("CELL-MASK", f"rows that keep their state need opset {_MASKED_SINCE}, and the model has {ctx.opset}")
    rest = remainder(loop, cell, reading, mask)
    if rest is None:
        detail = f"the cell state '{cell.hidden.inner.name}' of each step is needed, which the {cell.op_type} node does not give"
        return NotApplicable("CELL-SEQUENCE", detail)
    if probe(cell, reading, ctx, mask, found.weights) is not True:
        detail = f"the {cell.op_type} read off '{cell.hidden.inner.name}' was not confirmed by running the body"
        return NotApplicable("CELL-PROBE", detail)
    stacks = Stacks(loop, ctx.builder())
    given = _given(stacks, cell, rest, reading, mask, ctx)
    if isinstance(given, NotApplicable):
        return given
    for output in loop.scan_outputs:
        source = through_identity(output.inner)
        if source is not None and source in given.places:
            given.results.append((output.outer, stacks.ordered(stacks.full(source), output.reverse)))
    outputs = [output for output in loop.scan_outputs if output.outer not in {old for old, _ in given.results}]

    def edit() -> list[ir.Node]:
        stacks.build.insert_before(loop.node)
        for node, place in rest.choices:
            node.replace_input_with(place, rest.after[0])
        for old, new in given.results:
            if old is not None:
                replace_value(old, new, ctx.names)
        if not rest.states and not outputs:
            remove_nodes([loop.node])
            return []
        scans, stand_ins = list(loop.scan_inputs), dict[ir.Value, ir.Value]()
        for value in given.places:
            inner = ir.Value(name=ctx.names.fresh(f"{value.name}_in"), type=value.type, shape=value.shape)
            stand_ins[value] = inner
            scans.append(ScanInput(stacks.get(value).value, inner, 0, stacks.backwards))
            for node, index in value.uses():
                node.replace_input_with(index, inner)
        states = [replace(state, next=stand_ins.get(state.next, state.next)) for state in rest.states]
        loop.body.outputs[:] = [*(state.next for state in states), *(output.inner for output in outputs)]
        remove_nodes(unread_nodes(loop.body))
        node = rebuild(loop, ctx.names, states=states, scan_inputs=scans, scan_outputs=outputs)
        give_own_nodes(loop.body, ctx.names)
        return [node]

    rows = "" if mask is None else ", over the steps that each row runs"
    return Patch(f"replaced the recurrence by a native {cell.op_type} of {cell.size} units{rows}", edit)


@dataclass
class _Given:
    """``places``: the body values that the native node gives for all steps. ``results``: the loop's results that it gives."""

    places: list[ir.Value]
    results: list[tuple[ir.Value | None, ir.Value]]


def _given(
    stacks: Stacks, cell: Cell, rest: Remainder, reading: Interpretation, mask: Mask | None, ctx: Context
) -> _Given | NotApplicable:
    """Write the native node, and say what it gives."""
    b, backwards, lead = stacks.build, stacks.backwards, reading.dims[source_of(cell.hidden)]
    runs = None if mask is None else _stacked(stacks, mask, len(lead))
    if isinstance(runs, NotApplicable):
        return runs
    inputs = [_input(stacks, reading, key, width, lead) for key, width in cell.sources]
    if not inputs:
        cell, inputs = with_input(stacks, cell)

    def write(part: Builder) -> NativeResults:
        if runs is None:
            if backwards and ctx.opset >= _FLIPS_SINCE and turns_slowly(cell, lead, ctx.options):
                return write_between_reversals(part, cell, inputs, lead)
            return write_native(part, cell, inputs, backwards, lead)
        return write_masked(part, cell, inputs, backwards, lead, runs)

    may_be_empty = not ctx.options.native_always and _may_be_empty(stacks.loop, cell, lead, runs is not None)
    native = write_guarded(b, cell, inputs[0], write) if may_be_empty else write(b)
    _name_sizes(native, lead, cell.size)
    places = list(rest.after)
    results: list[tuple[ir.Value | None, ir.Value]] = [(cell.hidden.final, native.hidden)]
    if cell.cell is not None and native.cell is not None:
        results.append((cell.cell.final, native.cell))
    for value in rest.after:
        features = reading.features(value)
        assert features is not None
        stacks.place(value, _with_lead(stacks, native.sequence, lead, features.dims, cell.size))
    for value, numbers in rest.elsewhere.items():
        assert runs is not None
        assert cell.hidden.inner.dtype is not None
        constant = b.const(numbers.astype(cell.hidden.inner.dtype.numpy()))
        features = reading.features(value)
        assert features is not None
        stacks.place(value, _with_lead(stacks, where(b, runs, native.sequence, constant), lead, features.dims, cell.size))
        places.append(value)
    for state in rest.followers:
        assert runs is not None
        first = unsqueeze(b, state.initial, [0])
        stacks.place(state.next, where(b, has_run(b, runs, backwards), native.sequence, first))
        places.append(state.next)
        results.append((state.final, stacks.last(state.next)))
    for state in rest.needs_previous:
        stacks.place(state.inner, stacks.delayed(state))
        places.append(state.inner)
    return _Given(list(dict.fromkeys(places)), results)


def _input(stacks: Stacks, reading: Interpretation, key: Hashable, width: int, lead: Sequence[int | str | None]) -> ir.Value:
    """Give a scanned source: [steps, *lead, width]."""
    scanned, own = reading.scanned[key], reading.dims[key]
    return _with_lead(stacks, stacks.ordered(scanned.outer, scanned.reverse), own, lead, width)


def _name_sizes(native: NativeResults, lead: Sequence[int | str | None], size: int) -> None:
    """Let results have the states' sizes by name, so that what scans them is seen to have the same rows."""
    steps = native.sequence.shape[0] if native.sequence.shape is not None else None
    native.sequence.shape = ir.Shape([steps, *lead, size])
    for final in (native.hidden, native.cell):
        if final is not None:
            final.shape = ir.Shape([*lead, size])


def _may_be_empty(loop: ScanView, cell: Cell, lead: Sequence[int | str | None], masked: bool) -> bool:
    """Whether there may be no steps, or no rows where the node does not run on none."""
    if not isinstance(loop.steps, int) and not has_steps(loop.node.graph):
        return True
    return (cell.op_type != "RNN" or masked) and any(not isinstance(dim, int) for dim in lead)


def _with_lead(
    stacks: Stacks, value: ir.Value, own: Sequence[int | str | None], lead: Sequence[int | str | None], width: int
) -> ir.Value:
    """Give [steps, *own, width] as [steps, *lead, width]: the same but for axes of size 1."""
    if list(own) == list(lead):
        return value
    return part_rows(stacks.build, join_rows(stacks.build, value, own, 1, width), lead, 1, width)


def _stacked(stacks: Stacks, mask: Mask, lead: int) -> ir.Value | NotApplicable:
    """Give which rows take which steps: bool [steps, ..., 1], with as many axes as the states have and one more."""
    reason = stacks.add_all(nodes_behind(stacks.body, [mask.value]))
    if reason is not None:
        return reason
    missing = lead + 1 - (rank_of(mask.value) or 0)
    runs = stacks.full(mask.value)
    if not mask.outcome:
        runs = stacks.build.op("Not", runs)
    return unsqueeze(stacks.build, runs, list(range(1, 1 + missing))) if missing else runs


def _obstacle(cell: Cell, reading: Interpretation) -> NotApplicable | None:
    states = cell.states
    kinds = {state.inner.dtype for state in states}
    if kinds not in ({ir.DataType.FLOAT}, {ir.DataType.FLOAT16}):
        detail = f"onnxruntime runs {cell.op_type} on float32 and float16 only, and '{states[0].inner.name}' is neither"
        return NotApplicable("CELL-TYPE", detail)
    if kinds == {ir.DataType.FLOAT16} and not all(_fits_float16(cell, name) for name in ("w", "r")):
        return NotApplicable("CELL-TYPE", f"the weights of the {cell.op_type} of '{states[0].inner.name}' are no float16 numbers")
    lead = reading.dims[source_of(cell.hidden)]
    own, others = [reading.dims[source_of(state)] for state in states], [reading.dims[key] for key, _ in cell.sources]
    unknown = sum(not isinstance(dim, int) for dim in lead)
    if (
        (unknown > 1 and len(lead) > 1)
        or None in lead
        or 0 in lead
        or any(each != lead for each in own)
        or any(rows_of(each) != rows_of(lead) for each in others)
    ):
        detail = f"the {cell.op_type} of '{states[0].inner.name}' has inputs or states that are not rows of one batch"
        return NotApplicable("CELL-ROWS", detail)
    return None


def _fits_float16(cell: Cell, name: str) -> bool:
    if name in cell.recipes:
        return cell.recipes[name].is_exact
    array = getattr(cell, name)
    return bool((array.astype(np.float16) == array).all())
