"""A loop that is a recurrent cell becomes the native node.

    Scan(h0, c0, xs) body(h, c, x) => (o * tanh(c2), c2 = f * c + i * g, ...)    ->    LSTM(xs, W, R, B, , h0, c0)

It does not matter how the cell is written: its values are read as polynomials of activations of linear maps, and the families are
read off those. Conditions: weights are loop-invariant and of known shapes; states are tensors of float32 or float16 whose last axis
holds the features; the native node is faster on the target, which is onnxruntime's CPU for a cell that a target has no node for and
that cannot be unrolled either; a probe at random points agrees. Rows may keep their states in some steps, on a condition that is
the same for all of a row (opset 11). The rest of the body stays in a loop that scans the hidden states, for other rules to take
apart. So does the cell state if each step needs it, since no node returns it.
"""

from dataclasses import replace

import onnx_ir as ir

from rewrites.base import since
from rewrites.base.report import PatchOutcome
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.graph.marks import BLOCKS
from rewrites.loops import Loop, LoopView, ScanView
from rewrites.loops.parts import label
from rewrites.recurrences.cells.find_cells import find_cells
from rewrites.recurrences.cells.interpretation import Interpretation
from rewrites.recurrences.cells.masks import CellMatch
from rewrites.recurrences.cells.node_values import write_node
from rewrites.recurrences.cells.probe import probe
from rewrites.recurrences.cells.remainder import remainder
from rewrites.recurrences.cells.suitability import absent_from_target, stays_on_cpu, too_slow, too_slow_with_cells, wrong_types
from rewrites.recurrences.results import read_stacks
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


_PRODUCTS = frozenset({"DynamicQuantizeMatMul", "Einsum", "GRU", "Gemm", "LSTM", "MatMul", "MatMulInteger", "QLinearMatMul", "RNN"})
_QUANTIZERS = frozenset({"DynamicQuantizeLinear", "DynamicQuantizeMatMul", "QuantizeLinear"})


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Look for a cell among the loop's states."""
    if isinstance(loop, LoopView) or loop.batched or not loop.states or ctx.opset < since.NATIVE_CELLS:
        return NOTHING_HERE
    axes = [scan.axis for scan in loop.scan_inputs] + [output.axis for output in loop.scan_outputs]
    directions = {scan.reverse for scan in loop.scan_inputs} | {output.reverse for output in loop.scan_outputs}
    if any(axes) or BLOCKS.on(loop.node) or (ctx.opset < since.SLICE_INPUTS and len(directions) > 1):
        return NOTHING_HERE
    if not any(node.op_type in _PRODUCTS for node in loop.body):
        return NOTHING_HERE
    reason: NotApplicable | None = None
    for match in find_cells(loop, ctx.opset):
        answer = _fused(loop, match, ctx)
        is_a = match.cell.describe(True in directions, match.mask is not None)
        if isinstance(answer, Patch):
            return replace(answer, made=replace(answer.made, is_a=is_a))
        reason = replace(answer, is_a=is_a)
    return reason or _why_no_cell(loop, ctx.opset)


def _fused(loop: ScanView, match: CellMatch, ctx: Context) -> Patch | NotApplicable:
    cell, mask = match.cell, match.mask
    absent = absent_from_target(cell, mask is not None, ctx.options.target)
    falls_back = absent is not None and stays_on_cpu(loop, ctx)
    if falls_back:
        ctx = replace(ctx, options=replace(ctx.options, native_always=False))
    obstacle = wrong_types(match) or (None if falls_back else absent) or too_slow(match, loop.steps, ctx.options)
    if obstacle is not None:
        return obstacle
    if mask is not None and ctx.opset < since.NATIVE_MASKS:
        return NotApplicable(
            "CELL-MASK", f"rows that keep their state need opset {since.NATIVE_MASKS}, and the model has {ctx.opset}"
        )
    rest = remainder(loop, match)
    if rest is None:
        detail = (
            f"the cell state beside '{cell.hidden.inner.name}' is needed in each step, which the {cell.op_type} node does not give"
        )
        return NotApplicable("CELL-SEQUENCE", detail)
    slow = too_slow_with_cells(match, ctx.options) if cell.cell in rest.states else None
    if slow is not None:
        return slow
    if not probe(match, ctx):
        detail = f"the {cell.op_type} read off '{cell.hidden.inner.name}' was not confirmed by running the body"
        return NotApplicable("CELL-PROBE", detail)
    stacks = Stacks(loop, ctx.builder())
    values = write_node(stacks, match, rest, ctx)
    if isinstance(values, NotApplicable):
        return values

    def edit() -> list[ir.Node]:
        for node, index in rest.choices:
            node.replace_input_with(index, rest.after[0])
        return read_stacks(stacks, [(value,) for value in values.body], rest.states, values.results, ctx)

    rows = "" if mask is None else ", over the steps that each row runs"
    where = ", which runs on onnxruntime's CPU as the loop would" if falls_back else ""
    what = f"replaced the recurrence by a native {cell.op_type} of {cell.size} units{rows}{where}"
    return Patch(what, edit, made=PatchOutcome(native=cell.op_type, on_cpu=falls_back))


def _why_no_cell(loop: ScanView, opset: int) -> NotApplicable:
    """Return the first thing in ``loop``, whose states meet weights, that no recurrent cell has, if there is one.

    A quantizer of the state is told apart from other operators. Measured: a DynamicQuantizeLSTM quantizes its input once, by the
    range of all steps, and the state by the range of the rows of one thread; results up to 1 differ from those of a loop that
    quantizes each step by 0.01 to more than 1. It has no constant scale, as static quantization has.
    """
    states = [state for state in loop.states if state.inner.dtype is not None and state.inner.dtype.is_floating_point()]
    inner = [state.inner for state in loop.states]
    quantizer = next((node for node in loop.body if node.op_type in _QUANTIZERS and node.inputs[0] in inner), None)
    if quantizer is not None:
        how = "by the range of the step" if quantizer.op_type.startswith("Dynamic") else "by a scale of its own"
        detail = f"{quantizer.op_type} {label(quantizer)} quantizes the state {how}, as no DynamicQuantizeLSTM does"
        return NotApplicable("CELL-QUANTIZED", detail)
    reading = Interpretation.of_body(loop, opset)
    unread = next((state for state in states if reading.abstract(state.inner) is None), None)
    if unread is not None:
        return NotApplicable("CELL-FEATURES", f"the number of features of the state '{unread.inner.name}' is not known")
    moving = {state.inner for state in states}
    for node in loop.body:
        if moving.isdisjoint(node.inputs):
            continue
        moving.update(node.outputs)
        is_read = all(value is None or reading.abstract(value) is not None for value in node.inputs)
        if is_read and all(reading.abstract(value) is None for value in node.outputs):
            detail = f"{node.op_type} {label(node)} is applied to the state, as in no RNN, GRU or LSTM"
            return NotApplicable("CELL-OPERATOR", detail)
    if states and all(reading.abstract(state.next) is not None for state in states):
        names = ", ".join(f"'{state.inner.name}'" for state in states)
        return NotApplicable("CELL-EQUATIONS", f"the equations of the state {names} are those of no RNN, GRU or LSTM")
    return NOTHING_HERE


RULE = Rule("recurrent-cell", "recurrence", "loop", check, recognises=True)
