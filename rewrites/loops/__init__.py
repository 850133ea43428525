"""The views of Scan and Loop: classes that give access to the parts of a loop.

Only this package knows the operand positions, opset dialects, axes and directions of Scan and Loop.

``view(node, opset)`` returns a ScanView or a LoopView, or raises MalformedLoop. Rules work on the parts of a view (states, scan
inputs, scan outputs, captures) and change a loop with ``rebuild``.
"""

from rewrites.loops.loop_view import LoopView
from rewrites.loops.parts import ScanInput, ScanOutput, State
from rewrites.loops.rebuild import make_loop, make_scan, rebuild, replace_node
from rewrites.loops.scan_view import ScanView, refuse_contradictions
from rewrites.loops.view import Loop, captured_values, is_loop, loops_in, view

__all__ = [
    "Loop",
    "LoopView",
    "ScanInput",
    "ScanOutput",
    "ScanView",
    "State",
    "captured_values",
    "is_loop",
    "loops_in",
    "make_loop",
    "make_scan",
    "rebuild",
    "refuse_contradictions",
    "replace_node",
    "view",
]
