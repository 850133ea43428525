"""Scanned axes that onnxruntime moves, and whether it may die of that.

Works round ORT-SCAN-MOVED-AXES.
"""

from rewrites.graph.values import static_dims
from rewrites.loops import Loop, LoopView

__all__ = ["may_end_the_process"]


def may_end_the_process(loop: Loop) -> bool:
    """Whether onnxruntime moves an axis of what may be empty, of which it dies."""
    if isinstance(loop, LoopView) or loop.batched:
        return False
    moved = [scan.outer for scan in loop.scan_inputs if scan.axis != 0]
    moved += [output.inner for output in loop.scan_outputs if output.axis != 0]
    sizes = [static_dims(value) for value in moved]
    return bool(moved) and not (isinstance(loop.steps, int) and loop.steps and all(dims and 0 not in dims for dims in sizes))
