"""Whether a Scan is in a form in which stacks can stand for its values.

Works round ORT-PRODUCT-OF-NOTHING.
"""

from rewrites.base import since
from rewrites.graph.context import Context
from rewrites.graph.marks import BLOCKS, OVER_BLOCKS
from rewrites.loops import ScanInput, ScanOutput, ScanView
from rewrites.rule import NOTHING_HERE, NotApplicable

__all__ = ["not_plain"]


def not_plain(loop: ScanView, ctx: Context) -> NotApplicable | None:
    """Return a reason where ``loop`` is in no form in which stacks can stand for its values."""
    if loop.batched:
        return NotApplicable("SCAN-8", "an opset-8 Scan runs its body row by row; lift the model to opset 9 or later first")
    parts: list[ScanInput | ScanOutput] = [*loop.scan_inputs, *loop.scan_outputs]
    if any(part.axis != 0 for part in parts):
        return NotApplicable("SCAN-AXES", "a scanned axis is not 0", silent=True)
    if ctx.opset < since.SLICE_INPUTS and len({part.reverse for part in parts}) > 1:
        return NotApplicable("SCAN-DIRECTIONS", f"directions differ, and opset {ctx.opset} has no way to turn a tensor round")
    if BLOCKS.on(loop.node) or (loop.body.name or "").startswith(OVER_BLOCKS):
        return NotApplicable("SCAN-BLOCKS", "each step already works on a block of the original steps")
    if any(state.inner.shape is not None and 0 in state.inner.shape.dims for state in loop.states):
        return NOTHING_HERE  # onnxruntime's own fusion of MatMul and Add fails on stacks of nothing
    return None
