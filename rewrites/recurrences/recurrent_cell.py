"""A loop that is a recurrent cell becomes the native node.

    Scan(h0, c0, xs) body(h, c, x) => (o * tanh(c2), c2 = f * c + i * g, ...)    ->    LSTM(xs, W, R, B, , h0, c0)

However the cell is written: its values are read as polynomials of activations of affine maps, and the families are read off those.
Conditions: weights are constants; states are float tensors of one feature axis and at most one more; the native node is faster
where the model will run; a probe at random points agrees. What else the body computes stays in a loop that scans the hidden states,
for other rules to take apart. Never touches a loop that needs the cell state of each step.
"""

from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from rewrites.context import Context
from rewrites.dependence import reads
from rewrites.fission.stacks import Stacks
from rewrites.loops import Loop, LoopView, ScanInput, ScanView, State, rebuild
from rewrites.moving import remove_nodes
from rewrites.normal_form.dead_code import unread_nodes
from rewrites.normal_form.own_outputs import give_own_nodes
from rewrites.recurrences.cell import Cell, source_of
from rewrites.recurrences.cost import too_slow
from rewrites.recurrences.empty_batch import write_guarded
from rewrites.recurrences.families import find_cells
from rewrites.recurrences.interpretation import Interpretation
from rewrites.recurrences.native import write_native
from rewrites.recurrences.no_input import with_input
from rewrites.recurrences.probe import probe
from rewrites.replace import replace_value
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch
from rewrites.values import through_identity

__all__ = ["NAME", "check"]

NAME = "recurrent-cell"

_NATIVE_SINCE = 7
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
    reading = Interpretation.of_body(loop, ctx.opset)
    reason: NotApplicable = NOTHING_HERE
    for cell in find_cells(reading):
        answer = _fused(loop, cell, reading, ctx)
        if isinstance(answer, Patch):
            return answer
        reason = answer
    return reason


def _fused(loop: ScanView, cell: Cell, reading: Interpretation, ctx: Context) -> Patch | NotApplicable:
    obstacle = _obstacle(cell, reading) or too_slow(cell, reading.dims[source_of(cell.hidden)], ctx.options)
    if obstacle is not None:
        return obstacle
    rest = _rest(loop, cell)
    if rest is None:
        detail = f"the cell state '{cell.hidden.inner.name}' of each step is needed, which the {cell.op_type} node does not give"
        return NotApplicable("CELL-SEQUENCE", detail)
    if probe(cell, reading, ctx) is not True:
        detail = f"the {cell.op_type} read off '{cell.hidden.inner.name}' was not confirmed by running the body"
        return NotApplicable("CELL-PROBE", detail)
    stacks = Stacks(loop, ctx.builder())
    inputs = [stacks.ordered(reading.scanned[key].outer, reading.scanned[key].reverse) for key, _ in cell.sources]
    lead = reading.dims[source_of(cell.hidden)]
    if not inputs:
        cell, inputs = with_input(stacks, cell)
    if cell.op_type != "RNN" and not ctx.options.native_always and any(not isinstance(dim, int) for dim in lead):
        native = write_guarded(stacks.build, cell, inputs, stacks.backwards, lead)
    else:
        native = write_native(stacks.build, cell, inputs, stacks.backwards, lead)
    after = _after(cell)
    stacks.place(after, native.sequence)
    stacks.place(cell.hidden.next, native.sequence)
    results = [(cell.hidden.final, native.hidden)]
    if cell.cell is not None and native.cell is not None:
        results.append((cell.cell.final, native.cell))
    if rest.needs_previous:
        stacks.place(cell.hidden.inner, stacks.delayed(cell.hidden))
    for output in loop.scan_outputs:
        source = through_identity(output.inner)
        if source in (after, cell.hidden.inner):
            results.append((output.outer, stacks.ordered(stacks.full(source), output.reverse)))
    outputs = [output for output in loop.scan_outputs if output.outer not in {old for old, _ in results}]

    def edit() -> list[ir.Node]:
        stacks.build.insert_before(loop.node)
        for old, new in results:
            if old is not None:
                replace_value(old, new, ctx.names)
        if not rest.states and not outputs:
            remove_nodes([loop.node])
            return []
        scans, stand_ins = list(loop.scan_inputs), dict[ir.Value, ir.Value]()
        for value in dict.fromkeys((after, cell.hidden.next, cell.hidden.inner)):
            if stacks.has(value):
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

    return Patch(f"replaced the recurrence by a native {cell.op_type} of {cell.size} units", edit)


def _after(cell: Cell) -> ir.Value:
    """Give the value that the hidden state becomes, of which the body may return a copy."""
    value = through_identity(cell.hidden.next)
    assert value is not None
    return value


def _obstacle(cell: Cell, reading: Interpretation) -> NotApplicable | None:
    states = [cell.hidden] if cell.cell is None else [cell.hidden, cell.cell]
    kinds = {state.inner.dtype for state in states}
    if kinds not in ({ir.DataType.FLOAT}, {ir.DataType.FLOAT16}):
        detail = f"onnxruntime runs {cell.op_type} on float32 and float16 only, and '{states[0].inner.name}' is neither"
        return NotApplicable("CELL-TYPE", detail)
    if kinds == {ir.DataType.FLOAT16} and not all(_fits_float16(array) for array in (cell.w, cell.r)):
        return NotApplicable("CELL-TYPE", f"the weights of the {cell.op_type} of '{states[0].inner.name}' are no float16 numbers")
    lead = reading.dims[source_of(cell.hidden)]
    dims = [reading.dims[key] for key in (*map(source_of, states), *(key for key, _ in cell.sources))]
    unknown = sum(not isinstance(dim, int) for dim in lead)
    if (unknown > 1 and len(lead) > 1) or None in lead or 0 in lead or any(each != lead for each in dims):
        detail = f"the {cell.op_type} of '{states[0].inner.name}' has inputs or states that are not rows of one batch"
        return NotApplicable("CELL-ROWS", detail)
    return None


def _fits_float16(array: np.ndarray) -> bool:
    return bool((array.astype(np.float16) == array).all())


@dataclass(frozen=True)
class _Rest:
    """What is left beside a cell: other states, and whether anything reads the hidden state as it was before the step."""

    states: tuple[State, ...]
    needs_previous: bool


def _rest(loop: ScanView, cell: Cell) -> _Rest | None:
    """Give what is left beside ``cell``; None where that needs the cell state."""
    own = [cell.hidden] if cell.cell is None else [cell.hidden, cell.cell]
    secret = set() if cell.cell is None else {cell.cell.inner, cell.cell.next}
    states = tuple(state for state in loop.states if state not in own)
    wanted = [output.inner for output in loop.scan_outputs] + [state.next for state in states]
    seen: set[ir.Value] = set()
    while wanted:
        value = wanted.pop()
        if value in seen:
            continue
        seen.add(value)
        node = value.producer()
        if value in secret:
            return None
        if through_identity(value) is not _after(cell) and node is not None and node.graph is loop.body:
            wanted.extend(reads(node))
    return _Rest(states, cell.hidden.inner in seen)
