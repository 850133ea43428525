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

__all__ = ["has_absent_nodes", "has_loops", "learn_again", "name_free_dims", "prepare"]

_INFERRED_BYTES = 1 << 12


def has_loops(model: ir.Model) -> bool:
    """Return True if ``model`` has a Scan or Loop in its main graph or a nested graph.

    Its functions are not searched.
    """
    return any(is_loop(node) for node in all_nodes(model.graph))


def has_absent_nodes(model: ir.Model, target: Abilities) -> bool:
    """Return True if ``target`` has no loops, and ``model`` has an If or recurrent node that it lacks."""
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
    _name_apart(graph, set(), ctx)
    for owner in [graph, *inner_graphs(graph)]:
        for value in owner.initializers.values():
            if value.const_value is not None and not value.is_graph_input():
                value.shape = ir.Shape(value.const_value.shape.numpy())
    _move_weights_out(ctx, _INFERRED_BYTES)
    _forget_names_in_bodies(graph)
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
    _learn_from_captures(ctx)
    make_range_inputs_scalars(graph, ctx.builder)
    note_quantized_weights(graph)
    _decide(ctx)


def learn_again(ctx: Context) -> bool:
    """Remove unread nodes, infer unknown shapes again, and fold known trip counts and conditions of Ifs.

    Return True if a rule may now apply, because a shape, trip count or condition became known, or because a result of a loop is
    not read any more. When rules build nodes, shapes are inferred node by node. This function infers the shapes of the complete
    model, and so finds more sizes.

    It does nothing if the model has no loops, no Ifs, and not both forward and reverse recurrent nodes.
    """
    graph = ctx.model.graph
    if not may_have_pairs(graph) and not any(is_loop(node) or is_if(node) for node in all_nodes(graph)):
        return False
    read = [value for node in all_nodes(graph) if is_loop(node) for value in node.outputs if value.uses()]
    remove_unread(graph)
    freed = any(not value.uses() for value in read)
    before = shapes_of(inner_values(graph))
    if not all(map(_is_known, before.values())):
        _forget_names_in_bodies(graph)
        put_bounds_into_bodies(ctx)
        insert_identities(ctx)
        infer_model(ctx.model)
        take_bounds_out_of_bodies(ctx)
        remove_identities(ctx)
        _learn_from_captures(ctx)
    decided = _decide(ctx)
    return freed or decided or any(_says_more(value.shape, shape) for value, shape in before.items())


def _is_known(shape: ir.Shape | None) -> bool:
    return shape is not None and not any(map(is_unknown, shape.dims))


def _says_more(now: ir.Shape | None, before: ir.Shape | None) -> bool:
    if now is None or before is None:
        return before is not now
    pairs = zip(now.dims, before.dims, strict=False)
    return any(
        (isinstance(new, int) and not isinstance(old, int)) or (is_unknown(old) and not is_unknown(new)) for new, old in pairs
    )


def _decide(ctx: Context) -> bool:
    """Turn known trip counts and conditions into constants. Return True if the model changed."""
    decided = False
    while sum(change_model(rule, ctx) for rule in BEFORE):
        decided = True
    return decided


def _move_weights_out(ctx: Context, least: int) -> None:
    """Move the initializers of at least ``least`` bytes from loop bodies to the main graph."""
    graph = ctx.model.graph
    for node in all_nodes(graph):
        if is_loop(node):
            for body in node_graphs(node):
                lift_initializers(body, graph, ctx.names, least)


def _learn_from_captures(ctx: Context) -> None:
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


def _forget_names_in_bodies(graph: ir.Graph) -> None:
    """Remove the names of dimensions in loop bodies.

    The same name may mean another size outside the body. Inference then finds the names that are valid everywhere.
    """
    for body in (body for node in all_nodes(graph) if is_loop(node) for body in node_graphs(node)):
        for value in [*body.inputs, *inner_values(body)]:
            value.shape = without_names(value.shape)


def _declare_steps_and_conditions(graph: ir.Graph) -> None:
    """Declare the step number and the condition in each Loop body if their types or shapes are missing.

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


def _name_apart(graph: ir.Graph, used: set[str], ctx: Context) -> None:
    """Rename values of ``graph`` and its nested graphs if another graph has the same name.

    ``used``: the names of the graphs visited before. The names of ``graph`` are added to it. If two graphs define the same name,
    onnxruntime refuses some models, and onnx's inference confuses the elements of the two values. Names of the main graph do not
    change, because it is visited first.
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
            _name_apart(inner, used, ctx)
