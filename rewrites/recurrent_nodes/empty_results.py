"""The empty results of a Scan without steps, whose sizes nothing tells but a step: one is run on a row of zeros.

    y = Scan (h0, xs) body(h, x) => f(h, x)    ->    y = no elements, of the sizes of f(h0, zeros like a row of xs)

Conditions: no operator that the results come from minds what numbers it is given, and none holds a graph.

Works round ORT-CONSTANT-BFLOAT16.
"""

import numpy as np
import onnx_ir as ir

from rewrites.analysis.speculation import depends_on_numbers
from rewrites.analysis.unsliced_types import unsliced_among
from rewrites.base import since
from rewrites.fission.separate import needed_for
from rewrites.graph.builder import Builder
from rewrites.graph.clones import copy_nodes
from rewrites.graph.context import Context
from rewrites.loops import ScanOutput, ScanView
from rewrites.ops.versions import concat, slice_axis

__all__ = ["can_run_on_zeros", "empty_like", "step_on_zeros", "zeros_of"]

_TO_THE_END = (1 << 63) - 1
_NO_CONSTANT_OF = {ir.DataType.BFLOAT16: ir.DataType.FLOAT}
"""Types that onnxruntime has no ConstantOfShape for, and one that casts to them."""


def can_run_on_zeros(loop: ScanView, opset: int) -> bool:
    """Whether a step may be run on zeros, and its results be made empty ones."""
    scans = [(scan.outer.dtype, scan.axis) for scan in loop.scan_inputs]
    outputs = [(output.inner.dtype, output.axis) for output in loop.scan_outputs]
    if any(kind in (None, ir.DataType.STRING) or axis < 0 for kind, axis in [*scans, *outputs]):
        return False
    if unsliced_among((scan.inner for scan in loop.scan_inputs), opset) is not None:
        return False
    return not loop.body.initializers and depends_on_numbers(loop.body, loop.body.inputs) is None


def step_on_zeros(b: Builder, loop: ScanView, outputs: list[ScanOutput], ctx: Context) -> list[ir.Value]:
    """Run what ``outputs`` come from on the initial states and rows of zeros, and return what they are for that step."""
    instead = {state.inner: state.initial for state in loop.states}
    for scan in loop.scan_inputs:
        shape = b.op("Shape", scan.outer)
        around = [slice_axis(b, shape, 0, scan.axis + 1, _TO_THE_END)]
        if scan.axis:
            around.insert(0, slice_axis(b, shape, 0, 0, scan.axis))
        assert scan.outer.dtype is not None
        instead[scan.inner] = zeros_of(b, concat(b, around, 0), scan.outer.dtype)
    nodes = needed_for([output.inner for output in outputs], list(loop.body))
    b.nodes.extend(copy_nodes(nodes, instead, ctx.names, "none", named=False))
    return [instead.get(output.inner, output.inner) for output in outputs]


def empty_like(b: Builder, step: ir.Value, axis: int, kind: ir.DataType) -> ir.Value:
    """Return no results like ``step``, stacked along ``axis``."""
    shape = b.op("Shape", step)
    sizes = [b.const([0]), slice_axis(b, shape, 0, axis, _TO_THE_END)]
    if axis:
        sizes.insert(0, slice_axis(b, shape, 0, 0, axis))
    return zeros_of(b, concat(b, sizes, 0), kind)


def zeros_of(b: Builder, shape: ir.Value, kind: ir.DataType) -> ir.Value:
    """Return zeros of a shape that a tensor says, of any type but strings."""
    by_way = _NO_CONSTANT_OF.get(kind, kind)
    if b.opset < since.CONSTANT_OF_SHAPE:
        return b.op("Expand", b.const(np.zeros(1, kind.numpy())), shape)
    zeros = b.op("ConstantOfShape", shape, value=ir.tensor(np.zeros(1, by_way.numpy())))
    return zeros if by_way == kind else b.op("Cast", zeros, to=int(kind))
