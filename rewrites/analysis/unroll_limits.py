"""Decides if unrolling a loop or a recurrent node creates too many nodes, or gains nothing."""

from collections.abc import Container

import onnx_ir as ir

from rewrites.base.abilities import UnrollLimits
from rewrites.base.not_applicable import NotApplicable
from rewrites.base.plain_text import counted
from rewrites.graph.context import Context
from rewrites.graph.values import const_array, rank_of
from rewrites.graph.walk import all_nodes
from rewrites.loops import Loop

__all__ = ["node_too_long", "nodes_when_unrolled", "too_long"]

_NODES_A_STEP = 24
"""The largest number of nodes that one step of a recurrent node without sequence lengths needs."""


def node_too_long(steps: int, directions: int, limits: UnrollLimits) -> NotApplicable | None:
    """Return a reason if unrolling a recurrent node exceeds ``limits``, else None.

    Args:
        steps: The number of steps of the node.
        directions: The number of its directions, 1 or 2.
        limits: The limits of unrolling.
    """
    nodes = steps * directions * _NODES_A_STEP
    if limits.steps is not None and steps > limits.steps:
        return NotApplicable("UNROLL-STEPS", f"{steps} steps are more than the {limits.steps} that may be unrolled")
    if nodes > limits.nodes or not steps:
        return NotApplicable("UNROLL-NODES", f"{steps} steps make about {nodes} nodes, more than the {limits.nodes} allowed")
    return None


def nodes_when_unrolled(loop: Loop, steps: int) -> int:
    """Return the number of nodes that replace ``loop`` if its ``steps`` steps are unrolled.

    Three kinds of nodes count: the copies of the body's nodes, the nodes that slice the scanned inputs, and the nodes that join the
    stacked results. Constant folding may remove some of them later.
    """
    body = sum(1 for _ in all_nodes(loop.body))
    single = sum(rank_of(scan.inner) in (None, 0) for scan in loop.scan_inputs)
    return steps * (body + single) + 2 * (len(loop.scan_inputs) + len(loop.scan_outputs))


def too_long(loop: Loop, steps: int, constants: Container[ir.Value], ctx: Context) -> NotApplicable | None:
    """Return a reason if unrolling ``loop`` exceeds the limits or gains nothing, else None.

    Args:
        loop: The loop.
        steps: The number of its steps.
        constants: Values outside the loop that are constant, although they are no initializers.
        ctx: The context. Its options contain the limits.
    """
    limits, nodes = ctx.options.unroll, nodes_when_unrolled(loop, steps)
    if limits.steps is not None and steps > limits.steps:
        detail = f"{steps} steps are more than the {limits.steps} that may be unrolled; they would make {nodes} nodes"
        return NotApplicable("UNROLL-STEPS", detail)
    if nodes > limits.nodes:
        return NotApplicable("UNROLL-NODES", f"{steps} steps make {nodes} nodes, more than the {limits.nodes} allowed")
    return _no_gain(loop, constants) if limits.where_it_pays else None


def _no_gain(loop: Loop, constants: Container[ir.Value]) -> NotApplicable | None:
    """Return a reason if the unrolled loop runs no faster on onnxruntime's CPU kernels, else None.

    Measured with onnxruntime 1.31 at 5 to 64 steps: a Scan costs 0.9 µs per step, and 0.3 µs for each scanned row or stacked
    result. The slices and joins of an unrolled loop cost as much as these rows and results. So a loop without scanned rows and
    stacked results runs 1.2 to 1.5 times as fast if it is unrolled, and any other loop 0.8 to 1.2 times as fast.
    """
    rows = sum(scan.outer not in constants and const_array(scan.outer) is None for scan in loop.scan_inputs)
    results = sum(output.outer is not None and bool(output.outer.uses()) for output in loop.scan_outputs)
    results += sum(output.outer is not None and output.outer.is_graph_output() for output in loop.scan_outputs)
    if not rows and results <= 1:
        return None
    return NotApplicable(
        "COST-UNROLL",
        f"each step reads {counted(rows, 'row')} and returns {counted(results, 'result')}, which costs as much outside a loop",
    )
