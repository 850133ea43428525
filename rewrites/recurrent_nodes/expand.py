"""Puts Scans of its equations in the place of a recurrent node, under an If where there may be no step, none where there is none.

LSTM (x, W, R)    ->    If (x has steps) then Scan (h0, c0, x @ W') else the initial states and an empty sequence

Works round ORT-SCAN-NO-STEPS and ORT-PRODUCT-OF-NOTHING.
"""

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.branches import write_if
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import dim_of
from rewrites.ops.rnn.recurrent_node import RecurrentNode, put_in_place
from rewrites.ops.versions import concat, shape_of, squeeze
from rewrites.recurrent_nodes.as_scan import initial_states, row_lengths, write_scans
from rewrites.rule import NotApplicable, Patch

__all__ = ["as_scans", "expand"]


def expand(view: RecurrentNode, ctx: Context) -> None:
    """Put the Scans in the place of a node of float32 or float64 whose ``layout`` is 0, in a model of opset 9 or later."""
    b = ctx.builder()
    initial, lengths = initial_states(b, view), row_lengths(b, view)
    steps = dim_of(view.x, 0)
    if 0 in (steps, dim_of(view.x, 1)):  # onnxruntime's own rewrites of a product make something else of sizes declared as 0
        put_in_place(ctx, b, view.node, _wanted(view, _nothing(b, view, initial)))
        return
    if isinstance(steps, int) and steps > 0:
        put_in_place(ctx, b, view.node, _wanted(view, write_scans(ctx, b, view, initial, lengths)))
        return
    some, none = b.another(), b.another()
    condition = squeeze(b, b.op("Less", b.const([0]), shape_of(b, view.x, 0)), [0])
    found = write_scans(ctx, some, view, initial, lengths)
    made = write_if(b, condition, (some, found), (none, _nothing(none, view, initial)), view.node.outputs[0].name)
    put_in_place(ctx, b, view.node, _wanted(view, list(made)))


def _nothing(b: Builder, view: RecurrentNode, initial: list[ir.Value]) -> list[ir.Value]:
    """Return an empty sequence and the initial states."""
    assert view.dtype is not None
    shape = [shape_of(b, view.x, 0), b.const([view.directions]), shape_of(b, view.x, 1), b.const([view.hidden])]
    zero = ir.tensor(np.zeros(1, view.dtype.numpy()))
    return [b.op("ConstantOfShape", concat(b, shape, 0), value=zero), *(b.op("Identity", one) for one in initial)]


def _wanted(view: RecurrentNode, results: list[ir.Value]) -> list[ir.Value | None]:
    return [value if old.name else None for old, value in zip(view.node.outputs, results, strict=False)]


def as_scans(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """See whether the opset has the Scan that the equations take. The node is of float32 or float64, its ``layout`` 0."""
    if ctx.opset < since.SCAN:
        return NotApplicable("RNN-OPSET", f"it takes a Scan of opset {since.SCAN}, and the model is of opset {ctx.opset}")

    def edit() -> list[ir.Node]:
        expand(view, ctx)
        return []

    return Patch(f"wrote it as {'two Scans' if view.directions > 1 else 'a Scan'} of its equations", edit)
