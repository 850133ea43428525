"""What is infinite in two products by constant matrices, one after the other, comes to the same in one, or it is said why not.

A row that holds something infinite has no number in its product, nor in the product of that. But which are infinite and which are
NaN hangs on the matrices: with unlike signs the second product has NaN where the one product of both has infinities.
"""

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.base.postorder import postorder
from rewrites.fission.magnitudes import largest
from rewrites.fission.product_chains import MOST_BYTES, Chain
from rewrites.graph.context import Context
from rewrites.graph.values import rank_of
from rewrites.loops import Loop
from rewrites.ops.versions import axis_of
from rewrites.rule import NotApplicable

__all__ = ["infinite_unlike"]

_FAR_FROM_OVERFLOW = 1e30
_KEEP_INFINITE = frozenset({"Add", "Sub", "Mul", "Identity"})


def infinite_unlike(chain: Chain, loop: Loop, ctx: Context) -> NotApplicable | None:
    """Say why what is infinite could come to something else, or None."""
    first, second = chain.first, chain.second
    if (
        second.result.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE)
        or ctx.options.fast_math
        or (not first.on_left and _is_normalised(second.result, ctx))
    ):
        return None
    growth = 1.0
    for each in (first, second):
        array = each.weights(MOST_BYTES)
        growth *= 1.0 if array is None else max(1.0, float(np.abs(array).sum(0).max()))
    if largest(first.given, loop) * growth <= _FAR_FROM_OVERFLOW:
        return None
    names = f"'{first.matrix.name}' and '{second.matrix.name}'"
    detail = f"'{first.given.name}' may be infinite, of which {names} make NaN, and their product might not"
    return NotApplicable("PRODUCTS-CORNERS", detail)


def _is_normalised(value: ir.Value, ctx: Context) -> bool:
    """Whether all that reads it makes NaN of a whole row in which no number is finite."""

    def results(reached: ir.Value) -> list[ir.Value]:
        return [node.outputs[0] for node, _ in reached.uses() if _keeps_infinite(node)]

    return all(
        bool(reached.uses())
        and not reached.is_graph_output()
        and all(_keeps_infinite(node) or _normalises(node, ctx) for node, _ in reached.uses())
        for reached in postorder([value], results)
    )


def _keeps_infinite(node: ir.Node) -> bool:
    return node.domain == "" and node.op_type in _KEEP_INFINITE


def _normalises(node: ir.Node, ctx: Context) -> bool:
    if node.domain != "" or len(node.outputs) != 1:
        return False
    rank, default = rank_of(node.outputs[0]), -1 if ctx.opset >= since.SOFTMAX_OF_ONE_AXIS else 1
    return node.op_type in ("Softmax", "LayerNormalization") and rank is not None and axis_of(node, default, rank) == rank - 1
