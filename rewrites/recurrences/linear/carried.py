"""A Scan over blocks of steps that has what is in the states before each block, of what each block does to them."""

from collections.abc import Callable, Sequence

import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import with_axes, without_axis
from rewrites.graph.marks import BLOCKS, OVER_BLOCKS
from rewrites.loops import ScanInput, ScanOutput, State, make_scan

__all__ = ["carried"]


def carried(build: Builder, ctx: Context, initial: ir.Value, stacks: Sequence[ir.Value], step: Callable[..., ir.Value]) -> ir.Value:
    """Return the states before each block, [blocks, ...]; ``initial``: those before the first.

    ``step``, given a builder, the states before a block and the rows of ``stacks`` for it, returns the states after it.
    """
    names, inside = build.names, ctx.builder()
    state = ir.Value(name=names.fresh("before"), type=initial.type, shape=initial.shape)
    rows = [ir.Value(name=names.fresh("block_in"), type=stack.type, shape=without_axis(stack.shape, 0)) for stack in stacks]
    after, seen = step(inside, state, *rows), inside.op("Identity", state)
    body = ir.Graph([], [], nodes=inside.nodes, name=names.fresh(OVER_BLOCKS))
    inside.nodes = []
    reads = [ScanInput(stack, row) for stack, row in zip(stacks, rows, strict=True)]
    scan = make_scan(names, body, [State(initial, state, after, None)], reads, [ScanOutput(seen, None)], "blocks")
    BLOCKS.put(scan, True)
    scan.outputs[1].shape = with_axes(initial.shape, 0, None)
    build.nodes.append(scan)
    return scan.outputs[1]
