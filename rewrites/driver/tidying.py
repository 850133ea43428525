"""Tidies a model after the last rule.

In opset 10, the result of a Slice gets a new name for each named size that the Slice may change:

    x [B, 3];  y = Slice(x, {-1}, {9}, {0})    ->    y = Slice(x, {-1}, {9}, {0});  y ["B cut for y", 3]

Without this, the shape inferences of onnx and onnxruntime give the result the size ``B`` of its input. onnxruntime may then use
the memory of one tensor for another tensor that is larger, and the run fails.

Works around ORT-SHARED-MEMORY and ONNX-SLICE-10-NAMES.
"""

import onnx_ir as ir

from rewrites.analysis.shapes.sizes_without_steps import declare_sizes_without_steps
from rewrites.analysis.shapes.slice_bounds import put_bounds_into_bodies
from rewrites.cleanup.cleanup import remove_unread
from rewrites.cleanup.parted_products import insert_identities
from rewrites.driver.model_changes import change_model
from rewrites.graph.context import Context
from rewrites.graph.dims import Dim, forgotten, is_made_up
from rewrites.graph.values import const_array, dim_of, rank_of
from rewrites.graph.walk import all_nodes, inner_values
from rewrites.registry import AFTER, AXES_OF_SCALARS, PRODUCTS_AFTER, STATELESS_LOOPS, WEIGHTS

__all__ = ["rename_sliced_sizes", "tidy"]


def tidy(ctx: Context) -> None:
    """Apply the rules that come last, and remove what the model does not need.

    Unread nodes, unused initializers, and names of dimensions that ortscan invented are removed.
    """
    graph = ctx.model.graph
    for rule in PRODUCTS_AFTER:
        change_model(rule, ctx)
    put_bounds_into_bodies(ctx)
    insert_identities(ctx)
    for rule in AFTER:
        change_model(rule, ctx)
    change_model(AXES_OF_SCALARS, ctx)
    remove_unread(graph)
    change_model(STATELESS_LOOPS, ctx)
    declare_sizes_without_steps(graph, ctx.names)
    for name, value in list(graph.initializers.items()):
        if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
            del graph.initializers[name]
    ctx.constants.drop_unused()
    for rule in WEIGHTS:
        change_model(rule, ctx)
    for value in [*graph.inputs, *inner_values(graph)]:
        value.shape = forgotten(value.shape, _is_made_up)
    rename_sliced_sizes(ctx.model)


def _is_made_up(dim: Dim) -> bool:
    return not isinstance(dim, int) and dim.value is not None and is_made_up(dim.value)


_KEEPS_NAMES = 10


def rename_sliced_sizes(model: ir.Model) -> None:
    """Give each named size of a Slice's result a new name if the Slice may change it.

    Do so only in models of opset 10.
    """
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
        old = [dim_of(source, axis) for axis in range(rank)]
        known = [dim_of(value, axis) for axis in range(rank)] if rank_of(value) == rank else [None] * rank
        kept = [None if axis in cut and isinstance(old[axis], int) else old[axis] for axis in range(rank)]
        dims = [kept[axis] if known[axis] is None else known[axis] for axis in range(rank)]
        lost = [axis for axis in cut if isinstance(dims[axis], str) and dims[axis] == old[axis]]
        for axis in lost:
            dims[axis] = f"{dims[axis]} cut for {value.name}"
        if lost:
            value.shape = ir.Shape(dims)
