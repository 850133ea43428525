"""Replace a loop that is a recurrent cell by the native node.

    Scan(h0, c0, xs) body(h, c, x) => (o * tanh(c2), c2 = f * c + i * g, ...)    ->    LSTM(xs, W, R, B, , h0, c0)

The body may compute the cell by any operators: body values are read as polynomials of activations of linear maps, and cells are
recognised in the polynomials. Conditions:

* The weights are loop-invariant, and their shapes are known.
* The states are tensors of float32 or float16 whose last axis holds the features.
* The native node is faster than the loop on the target. If the target has neither the node nor loops, and the loop cannot be
  unrolled, the node must be faster on onnxruntime's CPU.
* The cell and the body agree on random numbers. Otherwise the cell was recognised wrongly.

A body may have a mask: a condition that decides for each row whether its states change in the step (opset 11). Nodes that are not
part of the cell remain in a loop that scans the hidden states. An LSTM node returns only the last cell state. So if other nodes
need the cell state of each step, the remaining loop also computes the cell states.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import nodes_computing, reads
from rewrites.base import since
from rewrites.base.report import PatchOutcome
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context, evaluate_nodes
from rewrites.graph.marks import BLOCKS
from rewrites.graph.values import const_array, static_dims
from rewrites.loops import Loop, LoopView, ScanView
from rewrites.loops.parts import label
from rewrites.recurrences.cells.cell import source_of
from rewrites.recurrences.cells.equations import NumberAlgebra
from rewrites.recurrences.cells.find_cells import find_cells
from rewrites.recurrences.cells.interpretation import Interpretation
from rewrites.recurrences.cells.masks import CellMatch
from rewrites.recurrences.cells.node_values import remainder, write_node
from rewrites.recurrences.cells.suitability import absent_from_target, stays_on_cpu, too_slow, too_slow_with_cells, wrong_types
from rewrites.recurrences.results import read_stacks
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_PRODUCTS = frozenset({"DynamicQuantizeMatMul", "Einsum", "GRU", "Gemm", "LSTM", "MatMul", "MatMulInteger", "QLinearMatMul", "RNN"})
_QUANTIZERS = frozenset({"DynamicQuantizeLinear", "DynamicQuantizeMatMul", "QuantizeLinear"})
_ROWS, _TOLERANCE, _TOLERANCES = 3, 2e-3, {ir.DataType.FLOAT16: 2e-2}
"""The number of rows of a probe, the tolerance of its results, and tolerances for certain types."""


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return the patch for the first cell of ``loop`` that a native node can replace, or a reason."""
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
        answer = _native_node_patch(loop, match, ctx)
        is_a = match.cell.describe(True in directions, match.mask is not None)
        if isinstance(answer, Patch):
            return replace(answer, outcome=replace(answer.outcome, is_a=is_a))
        reason = replace(answer, is_a=is_a)
    return reason or _no_cell_reason(loop, ctx.opset)


def _native_node_patch(loop: ScanView, match: CellMatch, ctx: Context) -> Patch | NotApplicable:
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
            f"the cell state of '{cell.hidden.inner.name}' is needed in each step, but an {cell.op_type} node returns the last only"
        )
        return NotApplicable("CELL-SEQUENCE", detail)
    slow = too_slow_with_cells(match, ctx.options) if cell.cell in rest.states else None
    if slow is not None:
        return slow
    if not _agrees(match, ctx):
        detail = f"the {cell.op_type} read off '{cell.hidden.inner.name}' was not confirmed by running the body"
        return NotApplicable("CELL-PROBE", detail)
    stacks = Stacks(loop, ctx.builder())
    values = write_node(stacks, match, rest, ctx)
    if isinstance(values, NotApplicable):
        return values

    def edit() -> list[ir.Node]:
        for node, index in rest.choices:
            node.replace_input_with(index, rest.equal_to_next[0])
        return read_stacks(stacks, [(value,) for value in values.body], rest.states, values.results, ctx)

    rows = "" if mask is None else ", over the steps that each row runs"
    where = ", which runs on onnxruntime's CPU as the loop would" if falls_back else ""
    what = f"replaced the recurrence by a native {cell.op_type} of {cell.size} units{rows}{where}"
    return Patch(what, edit, outcome=PatchOutcome(native=cell.op_type, on_cpu=falls_back))


def _no_cell_reason(loop: ScanView, opset: int) -> NotApplicable:
    """Return the reason why ``loop`` is no recurrent cell: an unsuitable operator, state or equation.

    A quantized state is unsuitable, because a DynamicQuantizeLSTM quantizes differently. Measurements show that this operator
    quantizes its input once, by the range of all steps, and the state by the range of the rows of one thread. Its results, which
    are up to 1, differ by 0.01 to more than 1 from those of a loop that quantizes in each step. For static quantization, the
    operator would need a constant scale, which it does not have.
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


def _agrees(match: CellMatch, ctx: Context) -> bool:
    """Return True if the body runs on random numbers, and the cell computes the same results from them."""
    cell, reading, mask = match.cell, match.reading, match.mask
    states = cell.states
    wanted = [state.next for state in states]
    nodes = nodes_computing(reading.loop.body, wanted, () if mask is None else (mask.value,))
    inputs = {value for node in nodes for value in reads(node)} | {state.inner for state in states}
    sources: dict[Hashable, np.ndarray] = {}
    feeds = _draw_feeds(match, sources, inputs)
    if feeds is None or not all(key in sources for key, _ in cell.sources):
        return False
    draws = {weight: np.random.default_rng(5).standard_normal(static_dims(weight)) for weight in match.weights}
    fixed = {weight: array.astype(weight.dtype.numpy()) for weight, array in draws.items() if weight.dtype is not None}
    cell = cell.with_numbers({weight: array.astype(np.float64) for weight, array in fixed.items()})
    results = _evaluate(nodes, {**feeds, **fixed}, wanted, ctx)
    if results is None:
        return False
    before = [feeds[state.inner].astype(np.float64).reshape(-1, cell.size) for state in states]
    x = np.concatenate([sources[key] for key, _ in cell.sources], axis=1) if cell.sources else np.zeros((len(before[0]), 0))
    tolerance = _TOLERANCES.get(cell.dtype, _TOLERANCE)
    for result, new, old in zip(results, cell.step(NumberAlgebra(), x, *before), before, strict=False):
        expected = new
        if mask is not None:
            runs = (feeds[mask.value] == mask.outcome).reshape(-1, 1)
            if len(runs) not in (1, len(new)):
                return False
            expected = np.where(runs, new, old)
        if result.size != expected.size:
            return False
        if not np.allclose(result.reshape(expected.shape), expected, rtol=tolerance, atol=tolerance):
            return False
    return True


def _draw_feeds(match: CellMatch, sources: dict[Hashable, np.ndarray], inputs: set[ir.Value]) -> dict[ir.Value, np.ndarray] | None:
    """Return random arrays for ``inputs`` of the body. Add the arrays of scanned sources to ``sources``."""
    rng = np.random.default_rng(7)
    reading, mask = match.reading, None if match.mask is None else match.mask.value
    loop, feeds, symbols = reading.loop, dict[ir.Value, np.ndarray](), dict[str, int]()

    def size(dim: int | str | None) -> int:
        return dim if isinstance(dim, int) else _ROWS if dim is None else symbols.setdefault(dim, _ROWS)

    if mask is not None:
        if mask.shape is None:
            return None
        dims = reading.sizes(mask.shape)
        by_row = len(dims) == len(match.lead) + 1 and any(dim != 1 for dim in dims)
        shape = (*map(size, match.lead), 1) if by_row else (1,) * len(dims)
        feeds[mask] = np.asarray(rng.random(shape) < 0.5)
    for state in (state for state in loop.states if state.inner in inputs):
        features = reading.features(state.inner)
        if features is None or state.inner.dtype is None:
            return None
        lead = [size(dim) for dim in reading.dims[source_of(state)]]
        feeds[state.inner] = rng.standard_normal([*lead, *features.shape]).astype(state.inner.dtype.numpy())
    for scan in (scan for scan in loop.scan_inputs if scan.inner in inputs and scan.inner is not mask):
        features, dtype = reading.features(scan.inner), scan.inner.dtype
        polynomial = None if features is None else features.whole()
        if features is None or polynomial is None or dtype is None or scan.inner.shape is None:
            return None
        lead = [size(dim) for dim in reading.sizes(scan.inner.shape)[: features.lead]]
        rows = np.broadcast_to(polynomial.affine.bias, (int(np.prod(lead, dtype=np.int64)), polynomial.width)).copy()
        for key, matrix in polynomial.affine.terms.items():
            if key not in sources:
                sources[key] = rng.standard_normal((len(rows), len(matrix)))
            if len(sources[key]) != len(rows):
                return None
            rows += sources[key] @ matrix
        feeds[scan.inner] = rows.reshape([*lead, *features.shape]).astype(dtype.numpy())
    return feeds


def _evaluate(
    nodes: list[ir.Node], feeds: Mapping[ir.Value, np.ndarray], results: list[ir.Value], ctx: Context
) -> Sequence[np.ndarray] | None:
    """Run ``nodes`` and return ``results``; None if they read a value that is neither fed nor constant."""
    constants, outside, outputs = dict(feeds), list[ir.Node](), {value for node in nodes for value in node.outputs}
    for value in dict.fromkeys(value for node in nodes for value in reads(node)):
        if value not in outputs and not _add_constant(value, constants, outside, 0):
            return None
    if not all(value in outputs or value in feeds for value in results):
        return None
    return evaluate_nodes([ir.serde.serialize_node(node) for node in (*outside, *nodes)], constants, results, ctx)


def _add_constant(value: ir.Value, constants: dict[ir.Value, np.ndarray], nodes: list[ir.Node], depth: int) -> bool:
    """Collect the array of ``value``, or the nodes that compute it. Return False if it is not constant."""
    node, array = value.producer(), const_array(value, limit=1 << 31)
    if value in constants or node in nodes:
        return True
    if array is not None:
        constants[value] = array
        return True
    if node is None or depth > 16 or any(attribute.type == ir.AttributeType.GRAPH for attribute in node.attributes.values()):
        return False
    if not all(_add_constant(operand, constants, nodes, depth + 1) for operand in node.inputs if operand is not None):
        return False
    nodes.append(node)
    return True


RULE = Rule("recurrent-cell", "recurrence", "loop", check, recognises=True)
