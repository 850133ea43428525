"""How many steps a Scan is given, read when the model runs."""

import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.values import dim_of
from rewrites.loops import ScanView
from rewrites.ops.versions import concat, reduce, shape_of

__all__ = ["most_steps"]


def most_steps(b: Builder, loop: ScanView) -> ir.Value:
    """Return the length of the longest scanned input: where another has no step, onnxruntime is to refuse them."""
    unlike: dict[object, ir.Value] = {}
    for scan in loop.scan_inputs:
        size = dim_of(scan.outer, scan.axis)
        if size is None or size not in unlike:
            unlike[(id(scan),) if size is None else size] = shape_of(b, scan.outer, scan.axis)
    sizes = list(unlike.values())
    return reduce(b, "ReduceMax", concat(b, sizes, 0), [0], keepdims=True) if len(sizes) > 1 else sizes[0]
