"""What is done to a model after the last rule."""

from rewrites.analysis.shapes.cut_names import name_cut_sizes
from rewrites.analysis.shapes.sizes_without_steps import declare_sizes_without_steps
from rewrites.analysis.shapes.slice_bounds import put_bounds_into_bodies
from rewrites.cleanup.parted_products import part_outer_products
from rewrites.cleanup.unread import drop_unread
from rewrites.driver.model_changes import change_model
from rewrites.graph.context import Context
from rewrites.graph.dims import Dim, forgotten, is_made_up
from rewrites.graph.walk import inner_values
from rewrites.registry import AFTER, AXES_OF_SCALARS, PRODUCTS_AFTER, STATELESS_LOOPS, WEIGHTS_INTO_BODIES

__all__ = ["tidy"]


def tidy(ctx: Context) -> None:
    """Drop what the rewrites left without users: nodes outside loops, and initializers that are not inputs.

    Casts, products of halves, and what moves quantized numbers are put out of the way of faults of onnxruntime's.
    """
    graph = ctx.model.graph
    for rule in PRODUCTS_AFTER:
        change_model(rule, ctx)
    put_bounds_into_bodies(ctx)
    part_outer_products(ctx)
    for rule in AFTER:
        change_model(rule, ctx)
    change_model(AXES_OF_SCALARS, ctx)
    drop_unread(graph)
    change_model(STATELESS_LOOPS, ctx)
    declare_sizes_without_steps(graph, ctx.names)
    for name, value in list(graph.initializers.items()):
        if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
            del graph.initializers[name]
    ctx.constants.drop_unused()
    change_model(WEIGHTS_INTO_BODIES, ctx)
    for value in [*graph.inputs, *inner_values(graph)]:
        value.shape = forgotten(value.shape, _is_made_up)
    name_cut_sizes(ctx.model)


def _is_made_up(dim: Dim) -> bool:
    return not isinstance(dim, int) and dim.value is not None and is_made_up(dim.value)
