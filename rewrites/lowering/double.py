"""A node on float64 becomes a Scan of its equations: onnxruntime loads an LSTM or GRU of that type and fails when it runs.

LSTM (x, W, R) of double    ->    Scan (h0, c0, x @ W')
where there may be no step  ->    If (there is one) then the Scan else the initial states and an empty sequence
"""

import onnx_ir as ir

from rewrites.context import Context
from rewrites.lowering.expand import expand
from rewrites.lowering.recurrent_node import RecurrentNode
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch

__all__ = ["NAME", "as_scans", "check"]

NAME = "double-recurrence"

_SCANS_SINCE = 9


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """See whether the node is of float64."""
    if view.dtype != ir.DataType.DOUBLE or view.batch_first:
        return NOTHING_HERE
    return as_scans(view, ctx)


def as_scans(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """See whether the opset has the Scan that the equations take. The node is of float32 or float64, its ``layout`` 0."""
    if ctx.opset < _SCANS_SINCE:
        return NotApplicable("RNN-OPSET", f"it takes a Scan of opset {_SCANS_SINCE}, and the model is of opset {ctx.opset}")

    def edit() -> list[ir.Node]:
        expand(view, ctx)
        return []

    return Patch(f"wrote it as {'two Scans' if view.directions > 1 else 'a Scan'} of its equations", edit)
