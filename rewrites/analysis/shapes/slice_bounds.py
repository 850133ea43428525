"""Copies constant bounds of Slices into the bodies that read them.

The reason is that onnx's inference does not see constants of outer graphs:

    a = {1}, b = {9}; body (x) => (Slice(x, a, b))    ->    body (x) => (Slice(x, Constant {1}, Constant {9}))

If a Slice of a vector of sizes has bounds that onnx 1.23 does not see, onnx assumes that they are 0 and infers wrong ranks. If a
nested graph reads a constant of the main graph, onnx does not see this constant in the main graph either. Therefore a Slice of a
vector of sizes in the main graph gets constants of its own.

Rules should not see the copies. Copies in loop bodies are removed before the first rule and added again after the last rule.

Works around ONNX-SLICE-UNKNOWN-BOUNDS and ONNX-CAPTURED-CONSTANTS.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.marks import BOUND_NAMES
from rewrites.graph.replace import replace_value
from rewrites.graph.values import const_array, rank_of
from rewrites.graph.walk import all_nodes, inner_graphs, node_graphs
from rewrites.loops import is_loop

__all__ = ["put_bounds_into_bodies", "take_bounds_out_of_bodies"]

_CONSTANT_OF_INTEGERS = 9
_MOST = 16
"""The largest number of elements of a tensor of bounds."""


def take_bounds_out_of_bodies(ctx: Context) -> None:
    """Replace the copies of bounds in loop bodies by constants of the main graph.

    The names of the copies are attached to the constants of the main graph. ``put_bounds_into_bodies`` uses these names again.
    """
    for owner in list(all_nodes(ctx.model.graph)):
        for body in node_graphs(owner) if is_loop(owner) else ():
            for node in [constant for constant in body if constant.op_type == "Constant" and _is_copied_constant(constant)]:
                value = node.outputs[0]
                array = const_array(value)
                if array is None or array.size > _MOST or not _is_bound(value, body):
                    continue
                outside = ctx.constants.value(array, value.name or "bounds")
                BOUND_NAMES.put_new(outside, {}).setdefault(body, value.name)
                replace_value(value, outside, ctx.names)
                body.remove(node, safe=True)


def _is_copied_constant(node: ir.Node) -> bool:
    return node.domain == "" and node.name == f"node_{node.outputs[0].name}"


def _is_bound(value: ir.Value, body: ir.Graph) -> bool:
    users = [(node, index) for node, index in value.uses()]
    if value.is_graph_output() or not users:
        return False
    return all(node.op_type == "Slice" and node.domain == "" and index and node.graph is body for node, index in users)


def put_bounds_into_bodies(ctx: Context) -> None:
    """Replace each constant bound of a Slice that onnx's inference would not see by a new Constant node."""
    main = ctx.model.graph
    if ctx.opset < _CONSTANT_OF_INTEGERS:
        return
    copy_of: dict[ir.Value, ir.Value] = {}
    for node in list(main):
        if node.op_type == "Slice" and node.domain == "" and node.inputs[0] is not None and rank_of(node.inputs[0]) == 1:
            for index, value in enumerate(node.inputs):
                if index and value is not None and _is_read_inside(value, main):
                    copy_of[value] = copy_of.get(value) or _constant(value, node, ctx)
                    node.replace_input_with(index, copy_of[value])
    for graph in inner_graphs(main):
        copies: dict[tuple[str, tuple[int, ...], bytes], ir.Value] = {}
        for node in list(graph):
            if node.op_type != "Slice" or node.domain != "":
                continue
            for index, value in enumerate(node.inputs):
                if index == 0 or value is None or value.graph is graph or not value.is_initializer():
                    continue
                array = const_array(value)
                if array is None or array.size > _MOST:
                    continue
                key = (array.dtype.str, array.shape, array.tobytes())
                if key not in copies:
                    copies[key] = _constant(value, node, ctx)
                node.replace_input_with(index, copies[key])


def _is_read_inside(value: ir.Value, main: ir.Graph) -> bool:
    """Return True if ``value`` is a small constant of the main graph, and a nested graph reads it."""
    array = const_array(value) if value.graph is main else None
    return array is not None and array.size <= _MOST and any(user.graph is not main for user, _ in value.uses())


def _constant(value: ir.Value, reader: ir.Node, ctx: Context) -> ir.Value:
    array = const_array(value)
    assert array is not None
    assert reader.graph is not None
    named = (BOUND_NAMES.of(value) or {}).pop(reader.graph, None)
    name = ctx.names.fresh(value.name or "bounds") if named is None else named
    attribute = ir.AttrTensor("value", ir.tensor(array, name=name))
    constant = ir.Node("", "Constant", [], [attribute], outputs=[ir.Value(name=name, type=value.type, shape=value.shape)])
    constant.name = ctx.names.fresh(f"node_{name}") if named is None else f"node_{name}"
    reader.graph.insert_before(reader, constant)
    return constant.outputs[0]
