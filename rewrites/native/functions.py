"""The function that holds a loop which is called by its plan: where no library is registered, it is inlined and the loop runs."""

from collections.abc import Iterable, Sequence

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.values import const_array
from rewrites.graph.walk import all_nodes
from rewrites.native.names import DOMAIN, IR_VERSION

__all__ = ["add_function", "constants_inside", "free_overload", "function_of", "parameter", "read_inside"]


def free_overload(model: ir.Model, operator: str) -> str:
    """Return an overload that no function has."""
    number = 0
    while (DOMAIN, operator, f"l{number}") in model.functions:
        number += 1
    return f"l{number}"


def parameter(value: ir.Value, ctx: Context) -> ir.Value:
    """Return what stands for an outer value in the function."""
    return ir.Value(name=ctx.names.fresh(value.name or "value"), type=value.type, shape=value.shape)


def constants_inside(values: Iterable[ir.Value], inside: dict[ir.Value, ir.Value], ctx: Context) -> list[ir.Node]:
    """Return nodes that hold the constants among ``values``, and let their results stand for those ``inside``."""
    nodes = []
    for value in values:
        if value not in inside:
            array = const_array(value)
            assert array is not None
            inside[value] = parameter(value, ctx)
            attribute = ir.AttrTensor("value", ir.tensor(array, name=inside[value].name))
            name = ctx.names.fresh("constant")
            nodes.append(ir.Node("", "Constant", [], [attribute], outputs=[inside[value]], name=name))
    return nodes


def read_inside(body: ir.Graph, inside: dict[ir.Value, ir.Value]) -> None:
    """Let the body, and what is nested in it, read what stands for outer values."""
    for node in all_nodes(body):
        for index, given in enumerate(node.inputs):
            if given is not None and given in inside:
                node.replace_input_with(index, inside[given])


def function_of(
    operator: str,
    overload: str,
    parameters: Sequence[ir.Value],
    results: Sequence[ir.Value],
    nodes: Sequence[ir.Node],
    ctx: Context,
) -> ir.Function:
    """Return the function of these nodes."""
    for each in parameters:
        each.type = each.shape = None  # the call says them, and onnx_ir does not read those of a function
    graph = ir.Graph(parameters, results, nodes=nodes, opset_imports={"": ctx.opset}, name=f"{operator}_{overload}")
    return ir.Function(DOMAIN, operator, overload, graph=graph, attributes=[ir.Attr("plan", ir.AttributeType.STRING, None)])


def add_function(model: ir.Model, function: ir.Function) -> None:
    """Add the function to the model, whose version of the format must know overloads."""
    model.functions[function.identifier()] = function
    model.opset_imports.setdefault(DOMAIN, 1)
    model.ir_version = max(model.ir_version, IR_VERSION)
