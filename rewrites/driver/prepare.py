"""Prepares a model before the first rule on loops is tried, and infers shapes again between rules.

Works around ORT-INNER-NAMES, ORT-LOOP-UNDECLARED-INPUTS, ONNX-CAPTURED-CONSTANTS and ONNX-NAMES-OF-OTHER-GRAPHS.
"""

import onnx_ir as ir

from rewrites.analysis.shapes.inference import infer_model
from rewrites.analysis.shapes.slice_bounds import put_bounds_into_bodies, take_bounds_out_of_bodies
from rewrites.analysis.whole_reversals import keep_sizes_of_reversals
from rewrites.base.abilities import Abilities
from rewrites.cleanup.cleanup import remove_unread
from rewrites.cleanup.constant_branches import is_if
from rewrites.cleanup.parted_products import insert_identities, remove_identities
from rewrites.direction.pairs import may_have_pairs
from rewrites.driver.model_changes import change_model
from rewrites.graph.context import Context
from rewrites.graph.dims import FREE, is_unknown, is_vague, without_names
from rewrites.graph.node_inference import learn_shapes, shapes_of
from rewrites.graph.replace import dequantize_outside, lift_initializers
from rewrites.graph.values import const_array, shape_dims
from rewrites.graph.walk import all_nodes, has_order, inner_graphs, inner_values, node_graphs
from rewrites.loops import is_loop
from rewrites.ops.versions.plain_forms import make_range_inputs_scalars, remove_trailing_absent_inputs, set_onesided
from rewrites.recurrent_nodes.absent_nodes import is_a_recurrence, lacks
from rewrites.registry import BEFORE
from rewrites.tidy.quantization_notes import note_quantized_outputs, note_quantized_weights

__all__ = ["has_absent_nodes", "has_loops", "infer_again", "name_free_dims", "prepare"]

_INFERRED_BYTES = 1 << 12


def has_loops(model: ir.Model) -> bool:
    """Return True if ``model`` has a Scan or Loop in its main graph or a nested graph.

    Its functions are not searched.
    """
    return any(is_loop(node) for node in all_nodes(model.graph))


def has_absent_nodes(model: ir.Model, target: Abilities) -> bool:
    """Return True if ``target`` has no loops and does not support an If or recurrent node of ``model``."""
    if target.loops:
        return False
    has_if = "If" in target.control_flow
    return any(
        (not has_if and node.op_type == "If" and node.domain == "") or (is_a_recurrence(node) and lacks(node, target))
        for node in all_nodes(model.graph)
    )


def name_free_dims(model: ir.Model) -> None:
    """Name each unnamed dimension of the model's inputs.

    With names, inference can show that two unknown sizes are equal. ``tidy`` removes these names again.
    """
    for value in model.graph.inputs:
        if value.shape is not None and None in shape_dims(value.shape):
            dims = [f"{FREE}{value.name}.{i}" if dim is None else dim for i, dim in enumerate(shape_dims(value.shape))]
            value.shape = ir.Shape(dims)


def prepare(ctx: Context) -> None:
    """Prepare the model: sort nodes, infer shapes, lift weights out of bodies, and fold known trip counts."""
    graph = ctx.model.graph
    if not has_order(graph):
        graph.sort()
    _make_names_unique(graph, set(), ctx)
    for owner in [graph, *inner_graphs(graph)]:
        for value in owner.initializers.values():
            if value.const_value is not None and not value.is_graph_input():
                value.shape = ir.Shape(value.const_value.shape.numpy())
    _move_weights_out(ctx, _INFERRED_BYTES)
    _remove_dim_names_in_bodies(graph)
    _declare_steps_and_conditions(graph)
    set_onesided(graph)
    remove_trailing_absent_inputs(graph, ctx.opset)
    infer_model(ctx.model)
    note_quantized_outputs(graph)
    take_bounds_out_of_bodies(ctx)
    remove_identities(ctx)
    keep_sizes_of_reversals(graph, ctx.opset)
    _move_weights_out(ctx, 0)
    for body in [body for node in all_nodes(graph) if is_loop(node) for body in node_graphs(node)]:
        dequantize_outside(body, graph, ctx.names)
    _infer_body_shapes(ctx)
    make_range_inputs_scalars(graph, ctx.builder)
    note_quantized_weights(graph)
    _fold_known_values(ctx)


def infer_again(ctx: Context) -> bool:
    """Remove unread nodes, infer unknown shapes again, and fold known trip counts and conditions of Ifs.

    Rules infer shapes only for the nodes that they build. This function infers the shapes of the complete model, and so finds more
    sizes. It does nothing if the model has no loop, no If, and no pair of a forward and a reverse recurrent node.

    Return True if a rule may now apply, for one of these reasons:

    * A shape, trip count or condition became known.
    * No node reads a result of a loop any more.
    """
    graph = ctx.model.graph
    if not may_have_pairs(graph) and not any(is_loop(node) or is_if(node) for node in all_nodes(graph)):
        return False
    read = [value for node in all_nodes(graph) if is_loop(node) for value in node.outputs if value.uses()]
    remove_unread(graph)
    is_unread_now = any(not value.uses() for value in read)
    before = shapes_of(inner_values(graph))
    if not all(map(_is_known, before.values())):
        _remove_dim_names_in_bodies(graph)
        put_bounds_into_bodies(ctx)
        insert_identities(ctx)
        infer_model(ctx.model)
        take_bounds_out_of_bodies(ctx)
        remove_identities(ctx)
        _infer_body_shapes(ctx)
    folded = _fold_known_values(ctx)
    return is_unread_now or folded or any(_is_more_known(value.shape, shape) for value, shape in before.items())


def _is_known(shape: ir.Shape | None) -> bool:
    return shape is not None and not any(map(is_unknown, shape.dims))


def _is_more_known(new_shape: ir.Shape | None, old_shape: ir.Shape | None) -> bool:
    if new_shape is None or old_shape is None:
        return old_shape is not new_shape
    pairs = zip(new_shape.dims, old_shape.dims, strict=False)
    return any(
        (isinstance(new, int) and not isinstance(old, int)) or (is_unknown(old) and not is_unknown(new)) for new, old in pairs
    )


def _fold_known_values(ctx: Context) -> bool:
    """Replace known trip counts and conditions by constants. Return True if the model changed."""
    changed = False
    while sum(change_model(rule, ctx) for rule in BEFORE):
        changed = True
    return changed


def _move_weights_out(ctx: Context, min_bytes: int) -> None:
    """Move the initializers of at least ``min_bytes`` bytes from loop bodies to the main graph."""
    graph = ctx.model.graph
    for node in all_nodes(graph):
        if is_loop(node):
            for body in node_graphs(node):
                lift_initializers(body, graph, ctx.names, min_bytes)


def _infer_body_shapes(ctx: Context) -> None:
    """Infer the shapes in loop bodies that onnx's inference could not find.

    onnx ignores constants from outside the body, and does not refine a declared shape that has unknown sizes.
    """
    for node in all_nodes(ctx.model.graph):
        for body in node_graphs(node) if is_loop(node) else ():
            reading = {
                inner for inner in body if any(value is not None and _is_captured_number(value, body) for value in inner.inputs)
            }
            declared = {inner for inner in body if any(is_vague(value.shape) for value in inner.outputs)}
            learn_shapes(body, reading | declared, ctx.model.opset_imports, ctx.model.ir_version)


def _is_captured_number(value: ir.Value, body: ir.Graph) -> bool:
    whole = value.dtype is not None and value.dtype.is_integer()
    return whole and value.graph is not body and const_array(value) is not None


def _remove_dim_names_in_bodies(graph: ir.Graph) -> None:
    """Remove the names of dimensions in loop bodies.

    The same name may mean another size outside the body. Shape inference then declares the names that are valid in the whole model.
    """
    for body in (body for node in all_nodes(graph) if is_loop(node) for body in node_graphs(node)):
        for value in [*body.inputs, *inner_values(body)]:
            value.shape = without_names(value.shape)


def _declare_steps_and_conditions(graph: ir.Graph) -> None:
    """Declare missing types and shapes of the step number and the condition in each Loop body.

    onnxruntime needs the ranks of both.
    """
    for node in all_nodes(graph):
        if node.op_type != "Loop" or node.domain != "":
            continue
        condition = node.inputs[1] if len(node.inputs) > 1 else None
        shape = ir.Shape([]) if condition is None else condition.shape
        for body in node_graphs(node):
            for value, kind, rank in zip(
                body.inputs[:2], (ir.DataType.INT64, ir.DataType.BOOL), (ir.Shape([]), shape), strict=False
            ):
                value.type = value.type or ir.TensorType(kind)
                value.shape = rank if value.shape is None else value.shape


def _make_names_unique(graph: ir.Graph, used: set[str], ctx: Context) -> None:
    """Rename values of ``graph`` and its nested graphs if another graph defines the same name.

    With equal names, onnxruntime refuses some models, and onnx's inference confuses the elements of the two values. The main graph
    is visited first, so it keeps its names.

    Args:
        graph: The graph to visit.
        used: The names in the graphs that were visited before. The names in ``graph`` are added.
        ctx: Creates the new names.
    """
    own = [*graph.inputs, *(value for value in graph.initializers.values() if not value.is_graph_input())]
    own += [value for node in graph for value in node.outputs if value.name]
    for value in own:
        if value.name in used:
            name = ctx.names.fresh(value.name or "value")
            if value.is_initializer():
                graph.initializers.pop(value.name or "")
                value.name = name
                graph.register_initializer(value)
            value.name = name
    used.update(value.name or "" for value in own)
    for node in graph:
        for inner in node_graphs(node):
            _make_names_unique(inner, used, ctx)
