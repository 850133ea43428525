"""Replaces a recurrent node by one Scan per direction, or by a float32 node between casts.

    Y, Y_h = GRU (x, W, R)    ->    xw = x @ W' + biases,  Y_h, Y = Scan (h0, xw) body(h, xw_t) => (h', h')

The product of the inputs and W is computed outside the Scan, for all steps at once. If the sequence may have no steps, the Scans
are in a branch of an If, and the other branch returns the initial states and an empty sequence.

The rows of a batch may have different lengths. In steps after the end of a row, the row keeps its state, and its result is 0. This
holds for both directions. A row without steps ends in its initial state.

Works around ORT-SCAN-NO-STEPS, ORT-PRODUCT-OF-NOTHING and ORT-CONSTANT-BFLOAT16.
"""

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.branches import write_if
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import dim_of, shape_dims
from rewrites.loops import ScanInput, ScanOutput, State
from rewrites.loops.rebuild import make_scan
from rewrites.ops.rnn.recurrent_node import GATES, RecurrentNode, replace_by_copy, replace_by_nodes
from rewrites.ops.rnn.step import Weights, write_step
from rewrites.ops.versions import concat, count_up, shape_of, slice_axis, split, squeeze, transpose, unsqueeze, where
from rewrites.ops.versions.emit import checked_lengths
from rewrites.rule import NotApplicable, Patch

__all__ = ["as_scans", "expand", "in_float32", "initial_states", "zero_state", "zeros_of"]


_NO_CONSTANT_OF = {ir.DataType.BFLOAT16: ir.DataType.FLOAT}
"""Types for which onnxruntime has no ConstantOfShape, each with a type that can be cast to it."""


def expand(view: RecurrentNode, ctx: Context) -> None:
    """Replace a recurrent node by one Scan per direction.

    The node must compute in float32 or float64 and have ``layout`` 0. The model must have opset 9 or later.
    """
    b = ctx.builder()
    initial, lengths = initial_states(b, view), _row_lengths(b, view)
    steps = dim_of(view.x, 0)
    if 0 in (steps, dim_of(view.x, 1)):  # onnxruntime's optimiser fails on products with a declared size of 0
        results = _without_steps(b, view, initial)
    elif isinstance(steps, int) and steps > 0:
        results = _write_scans(ctx, b, view, initial, lengths)
    else:
        some, none = b.another(), b.another()
        condition = squeeze(b, b.op("Less", b.const([0]), shape_of(b, view.x, 0)), [0])
        scanned = _write_scans(ctx, some, view, initial, lengths)
        results = list(
            write_if(b, condition, (some, scanned), (none, _without_steps(none, view, initial)), view.node.outputs[0].name)
        )
    pairs = zip(view.node.outputs, results, strict=False)
    replace_by_nodes(ctx, b, view.node, [value if old.name else None for old, value in pairs])


def _without_steps(b: Builder, view: RecurrentNode, initial: list[ir.Value]) -> list[ir.Value]:
    """Return the results of a node without steps: an empty sequence and the initial states."""
    assert view.dtype is not None
    shape = [shape_of(b, view.x, 0), b.const([view.directions]), shape_of(b, view.x, 1), b.const([view.hidden])]
    zero = ir.tensor(np.zeros(1, view.dtype.numpy()))
    return [b.op("ConstantOfShape", concat(b, shape, 0), value=zero), *(b.op("Identity", state) for state in initial)]


def as_scans(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """Return a patch that replaces the node by Scans, or a reason if the model's opset is below 9."""
    if ctx.opset < since.SCAN:
        return NotApplicable("RNN-OPSET", f"it needs a Scan of opset {since.SCAN}, and the model has opset {ctx.opset}")

    def edit() -> list[ir.Node]:
        expand(view, ctx)
        return []

    return Patch(f"replaced it by {'two Scans' if view.directions > 1 else 'a Scan'} of its equations", edit)


def initial_states(b: Builder, view: RecurrentNode) -> list[ir.Value]:
    """Return the initial states of the node, each [directions, batch, hidden].

    If the node omits an initial state, return a tensor of zeros for it. ``layout`` must be 0.
    """
    return [zero_state(b, view) if state is None else state for state in view.states]


def zero_state(b: Builder, view: RecurrentNode) -> ir.Value:
    """Return the default initial state: zeros [directions, batch, hidden]. ``layout`` must be 0."""
    shape = concat(b, [b.const([view.directions]), shape_of(b, view.x, 1), b.const([view.hidden])], 0)
    return zeros_of(b, shape, view.dtype or ir.DataType.FLOAT)


def zeros_of(b: Builder, shape: ir.Value, kind: ir.DataType) -> ir.Value:
    """Return a tensor of zeros. ``shape`` is a tensor that holds the sizes of the returned tensor.

    ``kind``: the type of the elements, any type except strings.
    """
    by_way = _NO_CONSTANT_OF.get(kind, kind)
    if b.opset < since.CONSTANT_OF_SHAPE:
        return b.op("Expand", b.const(np.zeros(1, kind.numpy())), shape)
    zeros = b.op("ConstantOfShape", shape, value=ir.tensor(np.zeros(1, by_way.numpy())))
    return zeros if by_way == kind else b.op("Cast", zeros, to=int(kind))


def _row_lengths(b: Builder, view: RecurrentNode) -> ir.Value | None:
    """Return the input ``sequence_lens`` as int64, or None if the node has no such input.

    The returned tensor includes a check: a run fails if a length is negative or above the number of steps.
    """
    lengths = view.input("sequence_lens")
    if lengths is None:
        return None
    return checked_lengths(b, b.op("Cast", lengths, to=int(ir.DataType.INT64)), shape_of(b, view.x, 0))


def _write_scans(
    ctx: Context, b: Builder, view: RecurrentNode, initial: list[ir.Value], lengths: ir.Value | None
) -> list[ir.Value]:
    """Write the Scans of all directions, and return Y and the final states.

    ``initial``: the initial states. ``lengths``: the number of steps of each row, or None if all rows take all steps.
    """
    is_running = None if lengths is None else _running_steps(b, view, lengths)
    parts = [_direction(ctx, b, view, which, initial, is_running) for which in range(view.directions)]
    sequence = concat(b, [unsqueeze(b, part[0], [1]) for part in parts], 1)
    finals = zip(*(part[1:] for part in parts), strict=True)
    return [sequence, *(concat(b, [unsqueeze(b, part, [0]) for part in each], 0) for each in finals)]


def _running_steps(b: Builder, view: RecurrentNode, lengths: ir.Value) -> ir.Value:
    """Return a mask [steps, rows, 1] that is True in the steps before the end of a row."""
    time = count_up(b, shape_of(b, view.x, 0))
    return unsqueeze(b, b.op("Less", unsqueeze(b, time, [1]), unsqueeze(b, lengths, [0])), [2])


def _direction(
    ctx: Context, b: Builder, view: RecurrentNode, which: int, initial: list[ir.Value], is_running: ir.Value | None
) -> list[ir.Value]:
    backwards = view.reverse[which]
    weights, xw = _outside(b, view, which)
    dims = [None, None] if view.x.shape is None else shape_dims(view.x.shape)[:2]
    width = GATES[view.kind] * view.hidden
    scans = [ScanInput(xw, _inner(ctx, xw, "xw", [dims[1], width]), 0, backwards)]
    if is_running is not None:
        scans.append(ScanInput(is_running, _inner(ctx, is_running, "live", [dims[1], 1]), 0, backwards))
    firsts = [squeeze(b, slice_axis(b, first, 0, which, which + 1) if view.directions > 1 else first, [0]) for first in initial]
    before = [_inner(ctx, first, name, [dims[1], view.hidden]) for first, name in zip(firsts, "hc", strict=False)]
    inside = b.another()
    after = write_step(inside, view, view.functions[which], scans[0].inner, before, weights)
    result = after[0]
    if is_running is not None:
        assert view.dtype is not None
        result = where(inside, scans[1].inner, after[0], b.const(np.array(0, view.dtype.numpy())))
        after = [where(inside, scans[1].inner, new, old) for new, old in zip(after, before, strict=True)]
    else:
        result = inside.op("Identity", result)
    body = ir.Graph([], [], nodes=inside.nodes, name=ctx.names.fresh(f"{view.kind.lower()}_step"))
    states = [State(first, inner, new, None) for first, inner, new in zip(firsts, before, after, strict=True)]
    node = make_scan(ctx.names, body, states, scans, [ScanOutput(result, None, 0, backwards)], view.node.name or view.kind)
    b.nodes.append(node)
    *finals, sequence = node.outputs
    sequence.shape = ir.Shape([dims[0], dims[1], view.hidden])
    return [sequence, *finals]


def _outside(b: Builder, view: RecurrentNode, which: int) -> tuple[Weights, ir.Value]:
    """Write the nodes that run outside the Scan of one direction.

    ``which``: the index of the direction. Return a pair: the weights that each step reads, and the stack of ``x @ W'`` plus biases
    for all steps.
    """
    size, kind = view.hidden, view.kind

    def of_direction(name: str) -> ir.Value | None:
        value = view.input(name)
        if value is None:
            return None
        return squeeze(b, slice_axis(b, value, 0, which, which + 1) if view.directions > 1 else value, [0])

    w, r, bias, peepholes = of_direction("W"), of_direction("R"), of_direction("B"), of_direction("P")
    assert w is not None
    assert r is not None
    inner_bias = None
    parts = [transpose(b, r, [1, 0])]
    if kind == "GRU" and not view.linear_before_reset:
        parts = [transpose(b, part, [1, 0]) for part in split(b, r, 0, [2 * size, size], 2)]
    xw = b.op("MatMul", view.x, transpose(b, w, [1, 0]))
    if bias is not None:
        wb, rb = split(b, bias, 0, [GATES[kind] * size] * 2, 2)
        if kind == "GRU" and view.linear_before_reset:
            early, inner_bias = split(b, rb, 0, [2 * size, size], 2)
            rb = concat(b, [early, b.const(np.zeros(size, bias.dtype.numpy() if bias.dtype else np.float64))], 0)
        xw = b.op("Add", xw, b.op("Add", wb, rb))
    peeps = () if peepholes is None or kind != "LSTM" else split(b, peepholes, 0, [size] * 3, 3)
    return Weights(tuple(parts), inner_bias, tuple(peeps)), xw


def _inner(ctx: Context, outer: ir.Value, name: str, dims: list[int | str | None]) -> ir.Value:
    return ir.Value(name=ctx.names.fresh(name), type=outer.type, shape=ir.Shape(dims))


def in_float32(view: RecurrentNode, ctx: Context) -> ir.Node:
    """Replace a recurrent node by a float32 node between casts. Return the float32 node."""
    assert view.dtype is not None
    b, kind = ctx.builder(), int(view.dtype)

    def narrow(_: int, value: ir.Value) -> ir.Value:
        return b.op("Cast", value, to=kind)

    lengths = view.input("sequence_lens")
    wide = [
        value if value is None or value is lengths else b.op("Cast", value, to=int(ir.DataType.FLOAT)) for value in view.node.inputs
    ]
    return replace_by_copy(ctx, b, view.node, wide, narrow)
