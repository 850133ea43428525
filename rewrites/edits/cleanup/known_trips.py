"""Trip counts and conditions of Loops and Ifs that nodes around them compute from constants become those constants.

    n = Gather(Shape(X), 0)   # X [5, 2];  Loop(n, Less(0, n), …)    ->    Loop(5, true, …)

Done before any rule looks at a loop. Only what a Loop or If reads is looked at, and the few nodes that it is made from.
"""

from collections.abc import Iterable

import numpy as np
import onnx_ir as ir

from rewrites.edits.cleanup.folding import fold
from rewrites.graph.context import Context
from rewrites.graph.values import const_array
from rewrites.graph.walk import node_graphs

__all__ = ["computed_constants", "fold_trip_counts"]

_MOST_NODES = 64


def fold_trip_counts(graph: ir.Graph, ctx: Context) -> bool:
    """Give the Loops and Ifs of ``graph`` and what is nested in it their trip counts and conditions as constants, if they are.

    Return whether there were any.
    """
    operands: list[tuple[ir.Node, int, ir.Value]] = []
    found = False
    for node in graph:
        for nested in node_graphs(node):
            found |= fold_trip_counts(nested, ctx)
        if node.domain == "" and node.op_type in ("Loop", "If"):
            given = enumerate(node.inputs[: 2 if node.op_type == "Loop" else 1])
            operands += [(node, i, value) for i, value in given if value is not None and const_array(value) is None]
    known = computed_constants([value for _, _, value in operands], ctx)
    for node, i, value in operands:
        if value in known:
            node.replace_input_with(i, ctx.constants.value(known[value], value.name or "const"))
            found = True
    return found


def computed_constants(values: Iterable[ir.Value], ctx: Context) -> dict[ir.Value, np.ndarray]:
    """Give what nodes compute from constants for ``values``, and for what they are made from."""
    makers = {maker: None for value in values for maker in _makers(value)}
    return fold(makers, ctx)[1] if makers else {}


def _makers(value: ir.Value) -> list[ir.Node]:
    """Give the nodes that ``value`` is made from, makers before readers, as far as sizes; none where they are many."""
    order: dict[ir.Node, None] = {}
    seen: set[ir.Node] = set()
    waiting = [(value.producer(), False)]
    while waiting:
        node, ready = waiting.pop()
        if node is None or node_graphs(node):
            continue
        if ready:
            order.setdefault(node)
        elif node not in seen:
            seen.add(node)
            if len(seen) > _MOST_NODES:
                return []
            waiting.append((node, True))
            if node.op_type not in ("Shape", "Size"):
                waiting.extend((one.producer(), False) for one in node.inputs if one is not None)
    return list(order)
