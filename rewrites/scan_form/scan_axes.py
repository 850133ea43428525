"""Scanned axes other than 0 become axis 0 by Transposes outside the loop.

    ys = Scan<scan_input_axes = [1], scan_output_axes = [1]>(xs)    ->    ys = Transpose(Scan(Transpose(xs)))

The Transposes cost nothing, because onnxruntime itself transposes the complete tensor if an axis other than 0 is scanned. After
this rule, other rules only need to support axis 0. The directions of the Scan stay as they are. Condition: The rank of the scanned
tensor is known.

Works around ORT-SCAN-MOVED-AXES.
"""

from rewrites.graph.context import Context
from rewrites.loops import Loop
from rewrites.loops.view import may_crash_onnxruntime
from rewrites.rule import NotApplicable, Patch, Rule
from rewrites.scan_form.axes_in_front import move_scan_axes_to_front

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a Scan has scanned axes other than 0."""
    return move_scan_axes_to_front(loop, ctx)


RULE = Rule("scan-axes", "scan_form", "loop", check, crash_prone=may_crash_onnxruntime)
