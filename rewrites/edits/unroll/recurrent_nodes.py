"""A recurrent node that the target does not run becomes Scans of its equations, which are then written out step by step.

    Y, Y_h = GRU(x, W, R)   # x [6, B, I]    ->    xw = x @ W' + biases; Y_h, Y = Scan(h0, xw) body(h, xw_t) => (h', h')

Only where the target runs no loops either, the number of steps is known and within the limits, and the node is in no loop that is
left: there it is better off as it is, on the CPU. Numbers stay those of onnxruntime: a row of length 0 ends in zeros, and float16
is computed in float32.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.unroll_limits import node_too_long
from rewrites.base.abilities import Abilities
from rewrites.base.not_applicable import NotApplicable
from rewrites.edits.rnn.expand import expand
from rewrites.edits.rnn.in_float32 import in_float32
from rewrites.edits.rule import Patch
from rewrites.graph.context import Context
from rewrites.graph.values import const_array, dim_of
from rewrites.graph.walk import node_graphs
from rewrites.loops import is_loop
from rewrites.loops.checks import label
from rewrites.ops.rnn.functions import DEFAULTS
from rewrites.ops.rnn.recurrent_node import RecurrentNode, is_recurrent, read
from rewrites.ops.rnn.taken_as_0 import taken_as_0
from rewrites.ops.rnn.written_again import write_again
from rewrites.ops.versions import unsqueeze, where

__all__ = ["Absent", "absent_nodes", "lacks", "write_as_scan"]

_SCANS_SINCE = 9
_LENGTHS = 4


@dataclass(frozen=True)
class Absent:
    """A recurrent node that the target does not run, for the reason ``why``; ``where``: the path of names to it."""

    node: ir.Node
    where: str
    why: str

    @property
    def steps(self) -> int | str | None:
        """How many steps it takes: a number, a symbol's name, or None."""
        x = self.node.inputs[0] if self.node.inputs else None
        return None if x is None else dim_of(x, int(self.node.attributes.get_int("layout", 0) or 0))


def absent_nodes(ctx: Context) -> list[Absent]:
    """Give the recurrent nodes outside loops that the target does not run, where it runs no loops either."""
    target = ctx.options.target
    if target.loops:
        return []
    found = ((node, path, lacks(node, target)) for node, path in _outside_loops(ctx.model.graph, "main"))
    return [Absent(node, path, why) for node, path, why in found if why is not None]


def lacks(node: ir.Node, target: Abilities) -> str | None:
    """Say what ``target`` lacks to run the recurrent ``node``; None where it runs it, or who knows."""
    limits = target.recurrent.get(node.op_type)
    if limits is None:
        return f"{target.name} has no {node.op_type}"
    view = read(node)
    if isinstance(view, NotApplicable):
        return None
    missing = limits.lacking(
        activations=any(tuple(one.name for one in each) != DEFAULTS[view.kind] for each in view.functions),
        clip=view.clip is not None,
        peepholes=view.kind == "LSTM" and view.input("P") is not None,
        input_forget=view.input_forget,
        reset_before=view.kind == "GRU" and not view.linear_before_reset,
        lengths=view.input("sequence_lens") is not None,
    )
    return f"{target.name} runs no {view.kind} with {missing}" if missing else None


def write_as_scan(absent: Absent, ctx: Context) -> Patch | NotApplicable:
    """Say how to put Scans in the place of the node, or why it stays."""
    view = read(absent.node)
    if isinstance(view, NotApplicable):
        return view
    plain = view.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16) and not view.batch_first
    unsaid = bool(taken_as_0(view)) or ("clip" in view.node.attributes and view.clip is None)
    if not plain or unsaid or ctx.opset < _SCANS_SINCE:
        return NotApplicable("UNROLL-NODE", f"{absent.why}, and in this form it is not written out")
    steps = absent.steps
    if not isinstance(steps, int):
        return NotApplicable("UNROLL-UNKNOWN", f"{absent.why}, and its number of steps is not known before the model runs")
    refusal = node_too_long(steps, view.directions, ctx.options.unroll)
    if refusal is not None:
        return NotApplicable(refusal.code, f"{absent.why}, and {refusal.detail}")

    def edit() -> list[ir.Node]:
        current = _with_plain_lengths(view, steps, ctx)
        current = _read(in_float32(current, ctx)) if current.dtype == ir.DataType.FLOAT16 else current
        expand(current, ctx)
        return []

    scans = "two Scans" if view.directions > 1 else "a Scan"
    return Patch(f"wrote the {view.kind} as {scans} of its equations, since {absent.why}", edit)


def _with_plain_lengths(view: RecurrentNode, steps: int, ctx: Context) -> RecurrentNode:
    """Drop lengths that say nothing; let rows of length 0 end in zeros, as onnxruntime does."""
    lengths = view.input("sequence_lens")
    if lengths is None:
        return view
    known = const_array(lengths)
    b, inputs = ctx.builder(), list(view.node.inputs)
    if known is not None and (known == steps).all():
        inputs[_LENGTHS] = None
        return _read(write_again(ctx, b, view.node, inputs, lambda _, value: value))
    if known is not None and (known > 0).all():
        return view
    some = unsqueeze(b, b.op("Less", b.const(np.array(0, np.int32)), lengths), [0, 2])
    assert view.dtype is not None
    zero = b.const(np.zeros((), view.dtype.numpy()))
    return _read(write_again(ctx, b, view.node, inputs, lambda i, value: where(b, some, value, zero) if i else value))


def _read(node: ir.Node) -> RecurrentNode:
    view = read(node)
    assert isinstance(view, RecurrentNode)
    return view


def _outside_loops(graph: ir.Graph, path: str) -> Iterator[tuple[ir.Node, str]]:
    for node in graph:
        here = f"{path}/{node.op_type} {label(node)}"
        for inner in [] if is_loop(node) else node_graphs(node):
            yield from _outside_loops(inner, here)
        if is_recurrent(node):
            yield node, here
