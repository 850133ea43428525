"""A loop once more, for other states."""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.fission.separate import separate
from rewrites.graph.context import Context
from rewrites.graph.dims import with_axes, without_names
from rewrites.loops import ScanView, State

__all__ = ["copied"]


def copied(loop: ScanView, states: Sequence[State], ctx: Context) -> ir.Node:
    """Return a Scan of the parts of ``loop``, around a copy of its body, for ``states``."""

    def name(value: ir.Value) -> str:
        return ctx.names.fresh(value.name or "value")

    node = separate(loop, list(loop.body), states, {}, loop.scan_outputs, ctx, name=name)
    for output, stack in zip(loop.scan_outputs, node.outputs[len(states) :], strict=True):
        stack.shape = with_axes(without_names(output.inner.shape), 0, ScanView.of(node, ctx.opset).steps)
    return node
