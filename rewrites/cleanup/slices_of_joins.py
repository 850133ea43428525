"""Lets a Slice of a Concat read a part of the Concat directly, if it needs no other part.

    w = Concat <axis = 1> (s, a)  n = Slice (w, [4], [7], [1])    s [2, 3], a [2, 4]    ->    n = Slice (a, [1], [4], [1])

Models with overlapping frames keep the last samples in a state. Each step concatenates the state with the new frame, and slices the
last samples for the next step. If the new frame contains all these samples, no node reads the state any more.

Conditions: the Slice cuts one axis forwards at constant bounds, and the sizes of all parts along this axis are known.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import dim_of, producer_of, rank_of
from rewrites.loops import Loop
from rewrites.ops.versions import SliceSpec, axis_of, slice_axis, slice_range, slice_spec
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch for the first Slice that reads a single part of a Concat.

    The engine calls the rule again for the next Slice.
    """
    match = next(((node, part) for node in loop.body if (part := _single_part(node, ctx.opset)) is not None), None)
    if match is None:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        node, (value, axis, start, end) = match
        b = ctx.builder()
        read = slice_axis(b, value, axis, start, end)
        b.insert_before(node)
        replace_value(node.outputs[0], read, ctx.names)
        remove_nodes([node])
        return [loop.node]

    return Patch("read one part of a Concat directly instead of a Slice of the whole", edit)


def _single_part(node: ir.Node, opset: int) -> tuple[ir.Value, int, int, int] | None:
    """Return (part, axis, start, end) if the Slice ``node`` reads ``part[start:end]``, a part of a Concat.

    Return None if ``node`` does not read a single part of a Concat.
    """
    concat = producer_of(node.inputs[0], "Concat") if node.op_type == "Slice" and node.domain == "" and node.inputs else None
    if concat is None or concat.graph is not node.graph:
        return None
    rank = rank_of(concat.outputs[0])
    spec = slice_spec(node, opset, rank)
    if rank is None or not isinstance(spec, SliceSpec) or len(spec.axes) != 1 or spec.steps[0] != 1:
        return None
    axis = axis_of(concat, 0, rank)
    sizes = [None if value is None else dim_of(value, axis) for value in concat.inputs]
    known = [size for size in sizes if isinstance(size, int)]
    if axis != spec.axes[0] or len(known) < len(sizes):
        return None
    positions = slice_range(spec.starts[0], spec.ends[0], 1, sum(known))
    offset = 0
    for value, size in zip(concat.inputs, known, strict=True):
        if len(positions) and value is not None and offset <= positions[0] and positions[-1] < offset + size:
            return value, axis, positions[0] - offset, positions[-1] + 1 - offset
        offset += size
    return None


RULE = Rule("slices-of-joins", "cleanup", "loop", check)
