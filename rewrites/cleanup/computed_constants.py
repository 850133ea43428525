"""What nodes compute from constants, as far as few nodes do."""

from collections.abc import Iterable

import numpy as np
import onnx_ir as ir

from rewrites.cleanup.folding import fold
from rewrites.graph.context import Context
from rewrites.graph.walk import node_graphs

__all__ = ["computed_constants"]

_MOST_NODES = 64


def computed_constants(values: Iterable[ir.Value], ctx: Context) -> dict[ir.Value, np.ndarray]:
    """Return what nodes compute from constants for ``values``, and for what they are made from."""
    makers = {maker: None for value in values for maker in _makers(value)}
    return dict(fold(makers, ctx).known) if makers else {}


def _makers(value: ir.Value) -> list[ir.Node]:
    """Return the nodes that ``value`` is made from, producers before users, as far as sizes; none where they are many."""
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
