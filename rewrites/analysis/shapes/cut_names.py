"""What a Slice of opset 10 gives has a name of its own for each size that it cuts, where that has a name.

    x [B, 3];  y = Slice(x, {-1}, {9}, {0})    ->    y = Slice(x, {-1}, {9}, {0});  y ["B cut for y", 3]

The inference of onnx, and so onnxruntime's, lets such a Slice keep the name whatever it cuts; onnxruntime then may
give two tensors one piece of memory because their sizes have one name, and the run fails. A name that is written down stays.

Works round ORT-SHARED-MEMORY and ONNX-SLICE-10-NAMES.
"""

import onnx_ir as ir

from rewrites.graph.values import const_array, dim_of, rank_of
from rewrites.graph.walk import all_nodes

__all__ = ["name_cut_sizes"]

_KEEPS_NAMES = 10


def name_cut_sizes(model: ir.Model) -> None:
    """Write the names down, in all graphs of a model of opset 10."""
    if model.opset_imports.get("") != _KEEPS_NAMES:
        return
    for node in all_nodes(model.graph):
        source = node.inputs[0] if node.op_type == "Slice" and node.domain == "" and node.inputs else None
        rank = None if source is None else rank_of(source)
        if source is None or rank is None or node.outputs[0].is_graph_output():
            continue
        value, axes = node.outputs[0], node.inputs[3] if len(node.inputs) > 3 else None
        places = None if axes is None else const_array(axes)
        cut = {int(axis) % rank for axis in places.ravel()} if places is not None and rank else set(range(rank))
        known = [dim_of(value, axis) for axis in range(rank)] if rank_of(value) == rank else [None] * rank
        dims = [dim_of(source, axis) if known[axis] is None else known[axis] for axis in range(rank)]
        lost = [axis for axis in cut if isinstance(dims[axis], str) and dims[axis] == dim_of(source, axis)]
        for axis in lost:
            dims[axis] = f"{dims[axis]} cut for {value.name}"
        if lost:
            value.shape = ir.Shape(dims)
