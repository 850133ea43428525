"""Writes the native node of a cell, and the values of the loop that it computes: body values for all steps, and results."""

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import nodes_behind
from rewrites.base import since
from rewrites.base.not_applicable import NotApplicable
from rewrites.fission.stacks import Stacks
from rewrites.graph.branches import has_steps
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import rank_of
from rewrites.loops import ScanView
from rewrites.ops.versions import concat, reshape, slice_axis, unsqueeze, where
from rewrites.recurrences.cells.cell import Cell
from rewrites.recurrences.cells.features import Dims, Features
from rewrites.recurrences.cells.interpretation import Interpretation
from rewrites.recurrences.cells.masks import CellMatch, Mask
from rewrites.recurrences.cells.native_node import NativeResults, has_run, join_rows, part_rows, write_guarded, write_native
from rewrites.recurrences.cells.remainder import Remainder
from rewrites.recurrences.cells.suitability import reverses_slowly

__all__ = ["NodeValues", "write_node"]


@dataclass
class NodeValues:
    """``body``: the body values that the native node computes for all steps. ``results``: the loop's results that it computes."""

    body: list[ir.Value]
    results: list[tuple[ir.Value | None, ir.Value]]


def write_node(stacks: Stacks, match: CellMatch, rest: Remainder, ctx: Context) -> NodeValues | NotApplicable:
    """Write the native node, and return the values it computes, or the reason why its mask is not known for all steps at once."""
    cell, reading, mask, lead = match.cell, match.reading, match.mask, match.lead
    b, backwards = stacks.build, stacks.backwards
    for value in (*rest.after, *rest.elsewhere):
        if not _can_be_shaped(value, _features(reading, value), lead):
            return NotApplicable(
                "CELL-ROWS", f"the sizes of '{value.name}', which holds the rows of the {cell.op_type}, are not known"
            )
    runs = None if mask is None else _stacked(stacks, mask, len(lead))
    if isinstance(runs, NotApplicable):
        return runs
    inputs = [_input(stacks, reading, key, width, lead) for key, width in cell.sources]
    if not inputs:
        cell, inputs = _with_input(stacks, cell)
    reversals = ctx.opset >= since.SLICE_INPUTS and reverses_slowly(cell, lead, ctx.options)

    def write(part: Builder) -> NativeResults:
        return write_native(part, cell, inputs, lead, reverse=backwards, between_reversals=reversals, mask=runs)

    may_be_empty = _may_be_empty(stacks.loop, cell, lead, runs is not None)
    native = write_guarded(b, cell, inputs[0], write) if may_be_empty else write(b)
    # the names of the sizes are those of the states, so that loops that scan the results are known to have the same rows
    native.sequence.shape = ir.Shape([None if native.sequence.shape is None else native.sequence.shape[0], *lead, cell.size])
    for final in native.states:
        final.shape = ir.Shape([*lead, cell.size])
    body = list(rest.after)
    results: list[tuple[ir.Value | None, ir.Value]] = [*zip([state.final for state in cell.states], native.states, strict=True)]
    for value in rest.after:
        stacks.place(value, _shaped(b, native.sequence, lead, _features(reading, value)))
    for value, numbers in rest.elsewhere.items():
        assert runs is not None
        constant = b.const(numbers.astype(cell.dtype.numpy()))
        stacks.place(value, _shaped(b, where(b, runs, native.sequence, constant), lead, _features(reading, value)))
        body.append(value)
    for state in rest.followers:
        assert runs is not None
        first = unsqueeze(b, state.initial, [0])
        stacks.place(state.next, where(b, has_run(b, runs, backwards), native.sequence, first))
        body.append(state.next)
        results.append((state.final, stacks.last(state.next)))
    for state in rest.needs_previous:
        stacks.place(state.inner, stacks.delayed(state))
        body.append(state.inner)
    return NodeValues(list(dict.fromkeys(body)), results)


def _input(stacks: Stacks, reading: Interpretation, key: Hashable, width: int, lead: Dims) -> ir.Value:
    """Return a scanned source as [steps, *lead, width]; its own leading axes may have other axes of size 1."""
    scanned, own = reading.scanned[key], reading.dims[key]
    value = stacks.ordered(scanned.outer, scanned.reverse)
    return value if own == lead else part_rows(stacks.build, join_rows(stacks.build, value, own, 1, width), lead, 1, width)


def _may_be_empty(loop: ScanView, cell: Cell, lead: Dims, masked: bool) -> bool:
    """Return True if there may be no steps, or no rows for a node that does not run on none."""
    if not isinstance(loop.steps, int) and not has_steps(loop.node.graph):
        return True
    return (cell.op_type != "RNN" or masked) and any(not isinstance(dim, int) for dim in lead)


def _features(reading: Interpretation, value: ir.Value) -> Features:
    features = reading.features(value)
    assert features is not None
    return features


def _can_be_shaped(value: ir.Value, features: Features, lead: Dims) -> bool:
    """Return True if a stack of ``lead`` rows can get the axes that ``value`` has, which are those of ``features``."""
    axes = [*features.dims, *features.shape]
    rank = rank_of(value)
    unknown = sum(not isinstance(dim, int) for dim in features.dims)
    return (rank is None or rank == len(axes)) and (unknown <= 1 or features.dims == lead)


def _shaped(b: Builder, stack: ir.Value, lead: Dims, features: Features) -> ir.Value:
    """Return [steps, *lead, width] with the axes that ``features`` have behind the steps, which may include axes of size 1."""
    same = features.dims == lead
    if same and features.shape == (features.width,):
        return stack
    sizes = [0] * len(lead) if same else [dim if isinstance(dim, int) else -1 for dim in features.dims]
    return reshape(b, stack, [0, *sizes, *features.shape])


def _stacked(stacks: Stacks, mask: Mask, lead: int) -> ir.Value | NotApplicable:
    """Return which rows take which steps: bool [steps, ..., 1], with as many axes as the states have and one more."""
    reason = stacks.add_all(nodes_behind(stacks.body, [mask.value]))
    if reason is not None:
        return reason
    missing = lead + 1 - (rank_of(mask.value) or 0)
    runs = stacks.full(mask.value)
    if not mask.outcome:
        runs = stacks.build.op("Not", runs)
    return unsqueeze(stacks.build, runs, list(range(1, 1 + missing))) if missing else runs


def _with_input(stacks: Stacks, cell: Cell) -> tuple[Cell, list[ir.Value]]:
    """Return a ``cell`` without inputs with the input that the operators need: zeros [steps, ..., 1]."""
    b, initial = stacks.build, cell.hidden.initial
    assert initial.dtype is not None
    rows = slice_axis(b, b.op("Shape", initial), 0, 0, -1)
    zeros = ir.tensor(np.zeros(1, initial.dtype.numpy()))
    inputs = b.op("ConstantOfShape", concat(b, [stacks.steps, rows, b.const([1])], 0), value=zeros)
    return replace(cell, sources=((("zeros",), 1),), w=np.zeros((len(cell.w), 1))), [inputs]
