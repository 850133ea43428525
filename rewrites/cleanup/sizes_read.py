"""Sizes that are read out of a shape of which other sizes are free.

s = Shape (x)  n = Gather (s, 1)    x [T, 4]    ->    n = 4
s = Shape (x)  n = Slice (s, [1], [3])    x [T, 4, 8]    ->    n = [4, 8]
"""

import numpy as np
import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.values import const_array
from rewrites.ops.versions import SliceSpec, slice_range, slice_spec

__all__ = ["places_read", "sizes_read"]


def sizes_read(node: ir.Node, ctx: Context) -> np.ndarray | None:
    """Return what a Gather or Slice reads of a Shape, or None."""
    if node.op_type not in ("Gather", "Slice") or not node.inputs or node.inputs[0] is None:
        return None
    shape = node.inputs[0].producer()
    source = shape.inputs[0] if shape is not None and shape.op_type == "Shape" and shape.domain == "" else None
    if shape is None or source is None or source.shape is None:
        return None
    dims = list(source.shape.dims[shape.attributes.get_int("start") : shape.attributes.get_int("end")])
    places = places_read(node, len(dims), ctx.opset)
    if places is None or any(not -len(dims) <= place < len(dims) for place in places.reshape(-1).tolist()):
        return None
    read = [dims[place] for place in places.reshape(-1).tolist()]
    known = [dim for dim in read if isinstance(dim, int)]
    return np.array(known, np.int64).reshape(places.shape) if len(known) == len(read) else None


def places_read(node: ir.Node, length: int, opset: int) -> np.ndarray | None:
    """Return the positions that a Gather or Slice reads of a vector, its first operand; None where they are not constant."""
    if node.domain != "" or node.op_type not in ("Gather", "Slice"):
        return None
    if node.op_type == "Gather":
        return const_array(node.inputs[1])
    spec = slice_spec(node, opset, 1)
    if not isinstance(spec, SliceSpec) or list(spec.axes) != [0]:
        return None
    return np.array(list(slice_range(spec.starts[0], spec.ends[0], spec.steps[0], length)), np.int64)
