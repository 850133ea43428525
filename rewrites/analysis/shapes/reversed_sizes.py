"""Gives a tensor that is reversed, or only transposed, the sizes of what it is made of, where inference leaves them open."""

import onnx_ir as ir

from rewrites.analysis.whole_reversals import Reversals
from rewrites.graph.dims import forgotten, is_unknown, refined
from rewrites.graph.walk import all_nodes
from rewrites.ops.versions import perm_of

__all__ = ["keep_sizes_of_reversals"]


def keep_sizes_of_reversals(graph: ir.Graph, opset: int) -> None:
    """Go through all nodes of the main graph ``graph``, those in bodies included."""
    reversals = Reversals(opset, graph)
    for node in all_nodes(graph):
        if len(node.outputs) != 1 or node.domain != "" or node.op_type not in ("Gather", "Slice", "Transpose"):
            continue
        made, source = node.outputs[0], node.inputs[0]
        if made.shape is None or source is None or source.shape is None or not any(map(is_unknown, made.shape.dims)):
            continue
        dims = list(source.shape.dims)
        if len(dims) != len(made.shape) or all(map(is_unknown, dims)):
            continue
        if node.op_type == "Transpose":
            dims = [dims[axis] for axis in perm_of(node, len(dims))]
        elif reversals.read(node) is None:
            continue
        made.shape = refined(forgotten(made.shape, is_unknown), ir.Shape(dims))
