"""Trip counts and conditions of Loops and Ifs that are computed from constants become constants.

    n = Gather(Shape(X), 0)   # X [5, 2];  Loop(n, Less(0, n), …)    ->    Loop(5, true, …)

This rule runs before all rules on loops. It folds only nodes that trip counts and conditions depend on, and only if they are small.
"""

from collections.abc import Iterator

import onnx_ir as ir

from rewrites.cleanup.folding import computed_constants
from rewrites.graph.context import Context
from rewrites.graph.values import const_array
from rewrites.graph.walk import node_graphs
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if trip counts or conditions of Loops and Ifs are computed from constants."""
    operands = [
        (node, index, value, constants[value])
        for graph in _graphs_inside_out(model.graph)
        if (wanted := list(_variable_operands(graph)))
        for constants in [computed_constants([value for _, _, value in wanted], ctx)]
        for node, index, value in wanted
        if value in constants
    ]

    def edit() -> list[ir.Node]:
        for node, index, value, array in operands:
            node.replace_input_with(index, ctx.constants.value(array, value.name or "const"))
        return []

    what = "made trip counts and conditions that are computed from constants those constants"
    return Patch(what, edit) if operands else NOTHING_HERE


def _graphs_inside_out(graph: ir.Graph) -> Iterator[ir.Graph]:
    """Yield ``graph`` after all graphs nested in it."""
    for node in graph:
        for nested in node_graphs(node):
            yield from _graphs_inside_out(nested)
    yield graph


def _variable_operands(graph: ir.Graph) -> Iterator[tuple[ir.Node, int, ir.Value]]:
    """Yield each trip count and condition in ``graph`` that is not a constant.

    Each is a tuple of the Loop or If, the input index, and the value.
    """
    for node in graph:
        if node.domain == "" and node.op_type in ("Loop", "If"):
            for index, value in enumerate(node.inputs[: 2 if node.op_type == "Loop" else 1]):
                if value is not None and const_array(value) is None:
                    yield node, index, value


RULE = Rule("fold-trip-counts", "loop_form", "model", check)
