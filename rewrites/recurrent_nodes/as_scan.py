"""Writes a recurrent node as one Scan for each direction, with the product of inputs and W outside, for all steps at once.

    Y, Y_h = GRU (x, W, R)    ->    xw = x @ W' + biases,  Y_h, Y = Scan (h0, xw) body(h, xw_t) => (h', h')

A row shorter than the others is masked: its state stays and its result is 0 where the step number has passed its length, in either
direction, so a row without steps ends in its initial state.
"""

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import shape_dims
from rewrites.loops import ScanInput, ScanOutput, State
from rewrites.loops.rebuild import make_scan
from rewrites.ops.rnn.recurrent_node import GATES, RecurrentNode
from rewrites.ops.rnn.step import Weights, write_step
from rewrites.ops.versions import concat, count_up, shape_of, slice_axis, split, squeeze, transpose, unsqueeze, where
from rewrites.ops.versions.emit import checked_lengths
from rewrites.recurrent_nodes.empty_results import zeros_of

__all__ = ["initial_states", "row_lengths", "write_scans"]


def initial_states(b: Builder, view: RecurrentNode) -> list[ir.Value]:
    """Return the initial states, [directions, batch, hidden] each; zeros where the node is given none. ``layout`` is 0."""
    return [_zeros(b, view) if given is None else given for given in view.states]


def _zeros(b: Builder, view: RecurrentNode) -> ir.Value:
    shape = concat(b, [b.const([view.directions]), shape_of(b, view.x, 1), b.const([view.hidden])], 0)
    return zeros_of(b, shape, view.dtype or ir.DataType.FLOAT)


def row_lengths(b: Builder, view: RecurrentNode) -> ir.Value | None:
    """Return the lengths of the rows as int64, by way of what fails where one is not in 0..T; None where there are none."""
    lengths = view.input("sequence_lens")
    if lengths is None:
        return None
    return checked_lengths(b, b.op("Cast", lengths, to=int(ir.DataType.INT64)), shape_of(b, view.x, 0))


def write_scans(ctx: Context, b: Builder, view: RecurrentNode, initial: list[ir.Value], lengths: ir.Value | None) -> list[ir.Value]:
    """Return Y and the final states of a node whose ``layout`` is 0, from its initial states and the lengths of its rows."""
    live = None if lengths is None else _live_steps(b, view, lengths)
    parts = [_direction(ctx, b, view, which, initial, live) for which in range(view.directions)]
    sequence = concat(b, [unsqueeze(b, part[0], [1]) for part in parts], 1)
    finals = zip(*(part[1:] for part in parts), strict=True)
    return [sequence, *(concat(b, [unsqueeze(b, part, [0]) for part in each], 0) for each in finals)]


def _live_steps(b: Builder, view: RecurrentNode, lengths: ir.Value) -> ir.Value:
    """Return which steps of which row are real, bool of shape [T, B, 1]."""
    time = count_up(b, shape_of(b, view.x, 0))
    return unsqueeze(b, b.op("Less", unsqueeze(b, time, [1]), unsqueeze(b, lengths, [0])), [2])


def _direction(
    ctx: Context, b: Builder, view: RecurrentNode, which: int, initial: list[ir.Value], live: ir.Value | None
) -> list[ir.Value]:
    backwards = view.reverse[which]
    weights, xw = _outside(b, view, which)
    dims = [None, None] if view.x.shape is None else shape_dims(view.x.shape)[:2]
    width = GATES[view.kind] * view.hidden
    scans = [ScanInput(xw, _inner(ctx, xw, "xw", [dims[1], width]), 0, backwards)]
    if live is not None:
        scans.append(ScanInput(live, _inner(ctx, live, "live", [dims[1], 1]), 0, backwards))
    firsts = [squeeze(b, slice_axis(b, first, 0, which, which + 1) if view.directions > 1 else first, [0]) for first in initial]
    before = [_inner(ctx, first, name, [dims[1], view.hidden]) for first, name in zip(firsts, "hc", strict=False)]
    inside = b.another()
    after = write_step(inside, view, view.functions[which], scans[0].inner, before, weights)
    result = after[0]
    if live is not None:
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
    """Return what a step reads, and the inputs times W with the biases added."""
    size, kind = view.hidden, view.kind

    def own(name: str) -> ir.Value | None:
        value = view.input(name)
        if value is None:
            return None
        return squeeze(b, slice_axis(b, value, 0, which, which + 1) if view.directions > 1 else value, [0])

    w, r, bias, peepholes = own("W"), own("R"), own("B"), own("P")
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
