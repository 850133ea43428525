"""A tensor that is read from a split sequence is read from the original tensor instead.

    q = SplitToSequence(X);  Loop(M, c) body(i, c) => (c, SequenceAt(q, j))
    ->    Loop(M, c) body(i, c) => (c, Unsqueeze(Gather(X, j)))

Condition: the pieces have size 1. SequenceAt and Gather count negative indices from the end, and fail if one is out
of range.
"""

import onnx_ir as ir

from rewrites.base.plain_text import counted
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, take_over
from rewrites.graph.values import producer_of, rank_of, through_identity
from rewrites.loops import Loop
from rewrites.ops.versions import axis_of, gather, int_operand, unsqueeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the body reads a sequence that a SplitToSequence outside the loop computes."""
    reads = [(node, split) for node in loop.body if (split := _source_split(node)) is not None and split.graph is not loop.body]
    if not reads:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        for node, split in reads:
            build = ctx.builder()
            source, index = split.inputs[0], node.inputs[1]
            assert source is not None
            assert index is not None
            axis = axis_of(split, 0, rank_of(source))
            row = gather(build, source, index, axis)
            read = unsqueeze(build, row, [axis]) if _keeps_axis(split) else row
            build.insert_before(node)
            take_over(node.outputs[0], read, ctx.names)
        remove_nodes(node for node, _ in reads)
        return [loop.node]

    return Patch(f"read {counted(len(reads), 'tensor')} of a sequence from the tensor that was split into it", edit)


def _source_split(node: ir.Node) -> ir.Node | None:
    """Return the SplitToSequence that computes the sequence that ``node`` reads; None if unsupported."""
    if node.op_type != "SequenceAt" or node.domain != "":
        return None
    split, index = producer_of(through_identity(node.inputs[0]), "SplitToSequence"), node.inputs[1]
    if split is None or index is None or rank_of(index) != 0:
        return None
    source = split.inputs[0]
    if source is None or source.dtype in (None, ir.DataType.STRING) or rank_of(source) is None:
        return None
    size = split.inputs[1] if len(split.inputs) > 1 else None
    return split if size is None or (rank_of(size) == 0 and int_operand(split, 1) == 1) else None


def _keeps_axis(split: ir.Node) -> bool:
    """Return True if the pieces of ``split`` keep the axis along which the tensor is split."""
    sized = len(split.inputs) > 1 and split.inputs[1] is not None
    return sized or bool(split.attributes.get_int("keepdims", 1))


RULE = Rule("sequence-reads", "loop_form", "loop", check)
