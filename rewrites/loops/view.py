"""From a node to its view."""

import onnx_ir as ir

from rewrites.loops.loop_view import LoopView
from rewrites.loops.scan_view import ScanView

__all__ = ["Loop", "is_loop", "view"]

Loop = ScanView | LoopView


def is_loop(node: ir.Node) -> bool:
    """Whether ``node`` is a Scan or Loop of the standard operator set."""
    return node.op_type in ("Scan", "Loop") and node.domain == ""


def view(node: ir.Node, opset: int) -> Loop:
    """Read a Scan or Loop; raises MalformedLoop where the operator's own definition is violated."""
    return ScanView.of(node, opset) if node.op_type == "Scan" else LoopView.of(node, opset)
