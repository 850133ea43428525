"""A Cast to float32 between a Transpose and a MatMul goes before the Transpose, since onnxruntime may not survive it there.

    MatMul(Cast(Transpose <perm = [1, 0, 2]> (x)), w)    ->    MatMul(Transpose <perm = [1, 0, 2]> (Cast(x)), w)

onnxruntime 1.31 swaps the two itself to fuse the Transpose into the product, and ends the process with a segmentation fault where
the Transpose moves the first axis behind others but the last, or last, and the other operand is of another rank. Casts from any
type do it, and what onnxruntime drops may stand between: Identity, Dropout, Reshape and the like. Equal ranks are left alone.
"""

import onnx_ir as ir

from rewrites.context import Context
from rewrites.moving import remove_nodes
from rewrites.values import rank_of

__all__ = ["DROPPED", "cast_early"]

DROPPED = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""What onnxruntime drops where it changes nothing, so that it may stand between."""
_TRAINS = 3
"""How many inputs a Dropout has that is told whether to train."""


def cast_early(ctx: Context) -> None:
    """Do so all over the model."""
    moved: dict[ir.Value, ir.Value] = {}
    for node in list(ctx.model.graph.all_nodes()):
        if node.op_type != "MatMul" or node.domain != "":
            continue
        for index, operand in enumerate(node.inputs):
            cast = None if operand is None else operand.producer()
            if cast is None or operand is None or not _is_cast(cast) or not _ranks_differ(*node.inputs):
                continue
            chain = _moved_ones(cast)
            if chain and operand not in moved:
                moved[operand] = _cast_before(cast, chain, ctx)
            if chain:
                node.replace_input_with(index, moved[operand])
                _drop([cast, *chain])


def _is_cast(node: ir.Node) -> bool:
    return node.op_type == "Cast" and node.domain == "" and node.attributes.get_int("to", 0) == ir.DataType.FLOAT


def _ranks_differ(left: ir.Value | None, right: ir.Value | None) -> bool:
    ranks = [None if value is None else rank_of(value) for value in (left, right)]
    return None in ranks or ranks[0] != ranks[1]


def _is_dropped(node: ir.Node) -> bool:
    """Whether onnxruntime may drop ``node`` where it changes nothing; Dropout is one unless it may be told to train."""
    return node.domain == "" and (node.op_type in DROPPED or (node.op_type == "Dropout" and len(node.inputs) < _TRAINS))


def _moved_ones(cast: ir.Node) -> list[ir.Node]:
    """Give the nodes that the Cast goes before, the first one first: none where there is no Transpose of three axes or more."""
    chain: list[ir.Node] = []
    value, found = cast.inputs[0], 0
    while value is not None:
        node = value.producer()
        if node is None or node.graph is not cast.graph or not _is_dropped(node):
            break
        chain.append(node)
        if node.op_type == "Transpose" and (rank_of(value) or 3) > 2:
            found = len(chain)
        value = node.inputs[0]
    return chain[:found][::-1]


def _cast_before(cast: ir.Node, chain: list[ir.Node], ctx: Context) -> ir.Value:
    b = ctx.builder()
    (value,) = b.like(cast, [chain[0].inputs[0]])
    for node in chain:
        shape = node.outputs[0].shape
        value = b.like(node, [value, *node.inputs[1:]])[0]
        value.shape = value.shape if shape is None else shape
    b.insert_before(cast)
    return value


def _drop(nodes: list[ir.Node]) -> None:
    for node in (nodes[0], *reversed(nodes[1:])):
        if any(value.uses() or value.is_graph_output() for value in node.outputs):
            return
        remove_nodes([node])
