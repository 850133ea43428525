"""Constants that tell a Slice in a body where to cut stand in that body, since onnx's inference knows no others there.

    a = {1}, b = {9}; body (x) => (Slice(x, a, b))    ->    body (x) => (Slice(x, Constant {1}, Constant {9}))

Where such a Slice is one of sizes, onnx 1.23 takes the numbers that it does not know for 0, and finds ranks which contradict all
that is right.
"""

import onnx_ir as ir

from rewrites.context import Context
from rewrites.values import const_array

__all__ = ["put_bounds_into_bodies"]

_CONSTANT_OF_INTEGERS = 9
_MOST = 16
"""How many numbers a tensor may hold that is one of bounds."""


def put_bounds_into_bodies(ctx: Context) -> None:
    """Do so all over the model."""
    main = ctx.model.graph
    if ctx.opset < _CONSTANT_OF_INTEGERS:
        return
    for graph in main.subgraphs():
        copies: dict[ir.Value, ir.Value] = {}
        for node in list(graph):
            if node.op_type != "Slice" or node.domain != "":
                continue
            for place, value in enumerate(node.inputs):
                if place == 0 or value is None or value.graph is graph or not value.is_initializer():
                    continue
                array = const_array(value)
                if array is None or array.size > _MOST:
                    continue
                if value not in copies:
                    copies[value] = _constant(value, node, ctx)
                node.replace_input_with(place, copies[value])


def _constant(value: ir.Value, before: ir.Node, ctx: Context) -> ir.Value:
    array = const_array(value)
    assert array is not None
    assert before.graph is not None
    name = ctx.names.fresh(value.name or "bounds")
    attribute = ir.AttrTensor("value", ir.tensor(array, name=name))
    made = ir.Node("", "Constant", [], [attribute], outputs=[ir.Value(name=name, type=value.type, shape=value.shape)])
    made.name = ctx.names.fresh(f"node_{name}")
    before.graph.insert_before(before, made)
    return made.outputs[0]
