"""Puts a recurrent node under an If that keeps it from sequences without steps or rows."""

import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.branches import write_if
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.marks import GUARDED, UNSHIELDED, WAS_REFUSED, carry
from rewrites.graph.values import dim_of
from rewrites.ops.rnn.recurrent_node import RecurrentNode, put_in_place
from rewrites.ops.versions import concat, reduce, shape_of, squeeze
from rewrites.recurrent_nodes.as_scan import initial_states
from rewrites.recurrent_nodes.empty_results import zeros_of
from rewrites.recurrent_nodes.guarded import is_guarded
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch

__all__ = ["under_if"]

_STEPS, _ROWS = 0, 1


def under_if(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """See whether the sizes that do harm may be 0."""
    if view.batch_first or GUARDED.on(view.node):
        return NOTHING_HERE
    free = [axis for axis in _harmful(view) if _may_be_0(view, axis)]
    keeps_states = not UNSHIELDED.on(view.node) and any(state is not None for state in view.states)
    if free and _STEPS not in free and keeps_states and _may_be_0(view, _STEPS):
        free = [_STEPS, *free]
    if not free or is_guarded(ctx, view.node.graph, view.x, free):
        return NOTHING_HERE
    if ctx.opset < since.EXPAND:
        return NotApplicable("RNN-OPSET", f"an empty sequence takes opset {since.EXPAND}, and the model is of opset {ctx.opset}")

    def edit() -> list[ir.Node]:
        b = ctx.builder()
        sizes = _comparable(b, concat(b, [shape_of(b, view.x, axis) for axis in free], 0))
        least = reduce(b, "ReduceMin", sizes, [0], keepdims=True) if len(free) > 1 else sizes
        condition = squeeze(b, b.op("Less", _comparable(b, b.const([0])), least), [0])
        some, none = b.another(), b.another()
        initial = initial_states(none, view)
        found = list(some.like(view.node, view.node.inputs))
        node = some.nodes[0]
        carry(view.node, node)
        GUARDED.put(node, True)
        dims = [shape_of(none, view.x, 0), none.const([view.directions]), shape_of(none, view.x, 1), none.const([view.hidden])]
        empty = zeros_of(none, concat(none, dims, 0), view.dtype or ir.DataType.FLOAT)
        given = {id(one) for one in view.states}
        nothing = [empty, *(none.op("Identity", one) if id(one) in given else one for one in initial)]
        made = write_if(b, condition, (some, found), (none, nothing[: len(found)]), view.node.outputs[0].name)
        put_in_place(ctx, b, view.node, [value if old.name else None for old, value in zip(view.node.outputs, made, strict=True)])
        return [node]

    what = " or ".join(("no step", "no row")[axis] for axis in free)
    return Patch(f"put it under an If for sequences of {what}", edit)


def _comparable(b: Builder, sizes: ir.Value) -> ir.Value:
    """Return ``sizes`` in a type that Less and ReduceMin take in the opset of the builder."""
    return b.op("Cast", sizes, to=int(ir.DataType.FLOAT)) if b.opset < since.INTEGER_LESS else sizes


def _may_be_0(view: RecurrentNode, axis: int) -> bool:
    size = dim_of(view.x, axis)
    return not isinstance(size, int) or size == 0


def _harmful(view: RecurrentNode) -> list[int]:
    """Return the axes that must not be empty."""
    bare = view.input("sequence_lens") is None
    if view.kind == "LSTM" and UNSHIELDED.on(view.node):
        return [_ROWS]
    if view.kind != "RNN":
        return [_STEPS, _ROWS] if bare else [_ROWS]
    kept = WAS_REFUSED.on(view.node) and view.states[0] is not None
    return [_STEPS] if bare and kept else []
