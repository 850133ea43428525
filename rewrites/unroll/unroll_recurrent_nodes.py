"""Replaces a recurrent node that the target lacks by Scans of its equations, which are then unrolled.

    Y, Y_h = GRU(x, W, R)   # x [6, B, I]    ->    xw = x @ W' + biases; Y_h, Y = Scan(h0, xw) body(h, xw_t) => (h', h')

The results are the same as in onnxruntime. For a row of length 0, the final states are zeros. A float16 node computes in float32.

Conditions:

* The target runs no loops either.
* Unrolling is on, and the number of steps is known and within the limits.
* The node is not inside a loop that remains. Such a loop runs on the CPU, where the node is faster than Scans.

Works around ORT-RECURRENT-EMPTY-ROW.
"""

import numpy as np
import onnx_ir as ir

from rewrites.analysis.unroll_limits import node_too_long
from rewrites.base import since
from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Context
from rewrites.graph.values import const_array
from rewrites.ops.rnn.recurrent_node import (
    RecurrentNode,
    defaulted_to_zero,
    is_recurrent,
    read,
    replace_by_copy,
)
from rewrites.ops.versions import unsqueeze, where
from rewrites.recurrent_nodes.absent_nodes import Absent
from rewrites.recurrent_nodes.expand import expand, in_float32
from rewrites.rule import Patch, Rule

__all__ = ["RULE", "check"]

_LENGTHS = 4


def check(absent: Absent, ctx: Context) -> Patch | NotApplicable:
    """Return a patch that replaces the node by Scans, or the reason why the node stays."""
    if ctx.options.unroll.steps == 0:
        return NotApplicable("UNROLL-OFF", f"{absent.why}, and unrolling is switched off")
    if not is_recurrent(absent.node):
        return NotApplicable("UNROLL-NODE", f"{absent.why}, and its equations in floating point would give other numbers")
    view = read(absent.node)
    if isinstance(view, NotApplicable):
        return view
    is_supported = view.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16) and not view.batch_first
    has_undefined = bool(defaulted_to_zero(view)) or ("clip" in view.node.attributes and view.clip is None)
    if not is_supported or has_undefined or ctx.opset < since.SCAN:
        return NotApplicable("UNROLL-NODE", f"{absent.why}, and this form of it cannot be unrolled")
    steps = absent.steps
    if not isinstance(steps, int):
        return NotApplicable("UNROLL-UNKNOWN", f"{absent.why}, and its number of steps is not known before the model runs")
    refusal = node_too_long(steps, view.directions, ctx.options.unroll)
    if refusal is not None:
        return NotApplicable(refusal.code, f"{absent.why}, and {refusal.detail}")

    def edit() -> list[ir.Node]:
        current = _with_supported_lengths(view, steps, ctx)
        current = _read_recurrent(in_float32(current, ctx)) if current.dtype == ir.DataType.FLOAT16 else current
        expand(current, ctx)
        return []

    scans = "two Scans" if view.directions > 1 else "a Scan"
    return Patch(f"replaced the {view.kind} by {scans} of its equations, because {absent.why}", edit)


def _with_supported_lengths(view: RecurrentNode, steps: int, ctx: Context) -> RecurrentNode:
    """Return the node with sequence lengths that Scans handle as onnxruntime does.

    If each row has ``steps`` steps, drop the lengths. If a row may have the length 0, select zeros as its final states.
    """
    lengths = view.input("sequence_lens")
    if lengths is None:
        return view
    known = const_array(lengths)
    b, inputs = ctx.builder(), list(view.node.inputs)
    if known is not None and (known == steps).all():
        inputs[_LENGTHS] = None
        return _read_recurrent(replace_by_copy(ctx, b, view.node, inputs, lambda _, value: value))
    if known is not None and (known > 0).all():
        return view
    has_steps = unsqueeze(b, b.op("Less", b.const(np.array(0, np.int32)), lengths), [0, 2])
    assert view.dtype is not None
    zero = b.const(np.zeros((), view.dtype.numpy()))
    return _read_recurrent(
        replace_by_copy(ctx, b, view.node, inputs, lambda i, value: where(b, has_steps, value, zero) if i else value)
    )


def _read_recurrent(node: ir.Node) -> RecurrentNode:
    view = read(node)
    assert isinstance(view, RecurrentNode)
    return view


RULE = Rule("unroll", "unroll", "absent node", check)
