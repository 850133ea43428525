"""Builds the function to which a node for ortscan's library refers.

If a session has the library, the library runs the node. Otherwise onnxruntime inlines the function, which contains the original
loop or recurrent node.
"""

from collections.abc import Iterable, Sequence

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.values import const_array
from rewrites.graph.walk import all_nodes
from rewrites.native.operator_names import DOMAIN

__all__ = [
    "IR_VERSION",
    "add_constant_nodes",
    "add_function",
    "free_overload",
    "make_function",
    "new_parameter",
    "replace_reads",
]

IR_VERSION = 10
"""The first IR version in which functions can have overloads."""


def free_overload(model: ir.Model, operator: str) -> str:
    """Return an overload name of ``operator`` that no function of the model uses."""
    number = 0
    while (DOMAIN, operator, f"l{number}") in model.functions:
        number += 1
    return f"l{number}"


def new_parameter(value: ir.Value, ctx: Context) -> ir.Value:
    """Return a new function parameter with the type and shape of ``value``, the argument of the call."""
    return ir.Value(name=ctx.names.fresh(value.name or "value"), type=value.type, shape=value.shape)


def add_constant_nodes(values: Iterable[ir.Value], new_values: dict[ir.Value, ir.Value], ctx: Context) -> list[ir.Node]:
    """Return new Constant nodes for those constants of ``values`` that are not keys of ``new_values`` yet.

    ``new_values`` maps an outer value to the value that replaces it in the function. The results of the new nodes are added to it.
    """
    nodes = []
    for value in values:
        if value not in new_values:
            array = const_array(value)
            assert array is not None
            new_values[value] = new_parameter(value, ctx)
            attribute = ir.AttrTensor("value", ir.tensor(array, name=new_values[value].name))
            name = ctx.names.fresh("constant")
            nodes.append(ir.Node("", "Constant", [], [attribute], outputs=[new_values[value]], name=name))
    return nodes


def replace_reads(body: ir.Graph, new_values: dict[ir.Value, ir.Value]) -> None:
    """Replace each operand of a node in ``body`` or its nested graphs that is a key of ``new_values``."""
    for node in all_nodes(body):
        for index, value in enumerate(node.inputs):
            if value is not None and value in new_values:
                node.replace_input_with(index, new_values[value])


def make_function(
    operator: str,
    overload: str,
    parameters: Sequence[ir.Value],
    results: Sequence[ir.Value],
    nodes: Sequence[ir.Node],
    ctx: Context,
) -> ir.Function:
    """Return a function named ``operator`` that runs ``nodes`` and declares the attribute ``plan``.

    Remove the types and shapes of ``parameters``.
    """
    for each in parameters:
        each.type = each.shape = None  # the call has types; onnx_ir does not read the types of a function
    graph = ir.Graph(parameters, results, nodes=nodes, opset_imports={"": ctx.opset}, name=f"{operator}_{overload}")
    return ir.Function(DOMAIN, operator, overload, graph=graph, attributes=[ir.Attr("plan", ir.AttributeType.STRING, None)])


def add_function(model: ir.Model, function: ir.Function) -> None:
    """Add the function to the model. Raise the model's IR version to one that supports overloads."""
    model.functions[function.identifier()] = function
    model.opset_imports.setdefault(DOMAIN, 1)
    model.ir_version = max(model.ir_version, IR_VERSION)
