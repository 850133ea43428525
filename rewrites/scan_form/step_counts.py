"""Emits the number of steps of a Scan, and sets the number of steps of a Loop."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import dim_of, rank_of, static_dims
from rewrites.loops import LoopView, ScanView
from rewrites.ops.versions import concat, reduce, reshape, shape_of

__all__ = ["emit_step_count", "set_trip_count"]


def emit_step_count(b: Builder, loop: ScanView) -> ir.Value:
    """Emit the number of steps of a Scan: the length of its longest scan input.

    If only some scan inputs are empty, the result is not 0. An If on this number then runs the Scan, and onnxruntime reports the
    error, as in the original model.
    """
    unlike: dict[object, ir.Value] = {}
    for scan in loop.scan_inputs:
        size = dim_of(scan.outer, scan.axis)
        if size is None or size not in unlike:
            unlike[(id(scan),) if size is None else size] = shape_of(b, scan.outer, scan.axis)
    sizes = list(unlike.values())
    return reduce(b, "ReduceMax", concat(b, sizes, 0), [0], keepdims=True) if len(sizes) > 1 else sizes[0]


def set_trip_count(loop: LoopView, count: ir.Value, ctx: Context, conditions: Sequence[ir.Value] = ()) -> None:
    """Set the trip count of ``loop`` to ``count``, and its condition to the And of ``conditions``.

    Without ``conditions``, the condition is always true.
    """
    loop.node.resize_inputs(max(2, len(loop.node.inputs)))
    loop.node.replace_input_with(0, count)
    dims = (1,) if rank_of(loop.condition_in) == 1 else ()
    if not conditions:
        loop.node.replace_input_with(1, ctx.constants.value(np.ones(dims, np.bool_)))
        conditions = [loop.condition_in]
    build = ctx.builder()
    combined, *others = [value if static_dims(value) == dims else reshape(build, value, dims) for value in conditions]
    for condition in others:
        combined = build.op("And", combined, condition)
    go_on = ir.Value(name=ctx.names.fresh("go_on"), type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape(dims))
    build.append_to(loop.body)
    loop.body.append(ir.Node("", "Identity", [combined], outputs=[go_on], name=ctx.names.fresh("node_go_on")))
    loop.body.outputs[:] = [go_on, *loop.body.outputs[1:]]
