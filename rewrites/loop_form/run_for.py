"""Lets a Loop take a number of steps, whatever its condition was."""

import numpy as np
import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.values import rank_of
from rewrites.loops import LoopView

__all__ = ["run_for"]


def run_for(loop: LoopView, count: ir.Value, ctx: Context) -> None:
    """Let ``loop`` take ``count`` steps, and its condition always hold."""
    loop.node.resize_inputs(max(2, len(loop.node.inputs)))
    loop.node.replace_input_with(0, count)
    dims = (1,) if rank_of(loop.condition_in) == 1 else ()
    loop.node.replace_input_with(1, ctx.constants.value(np.ones(dims, np.bool_)))
    go_on = ir.Value(name=ctx.names.fresh("go_on"), type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape(dims))
    loop.body.append(ir.Node("", "Identity", [loop.condition_in], outputs=[go_on], name=ctx.names.fresh("node_go_on")))
    loop.body.outputs[:] = [go_on, *loop.body.outputs[1:]]
