"""Transposes scanned tensors outside a Scan so that the scanned axis is axis 0."""

from dataclasses import replace

import onnx_ir as ir

from rewrites.base.plain_text import counted
from rewrites.graph.context import Context
from rewrites.graph.replace import replace_value
from rewrites.graph.values import rank_of
from rewrites.loops import Loop, LoopView, ScanOutput, rebuild
from rewrites.ops.versions import move_axis_first, move_first_axis
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch

__all__ = ["move_scan_axes_to_front"]


def move_scan_axes_to_front(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch after which only axis 0 is scanned, or the reason why there is no such patch."""
    if isinstance(loop, LoopView) or loop.batched:
        return NOTHING_HERE
    inputs = [scan for scan in loop.scan_inputs if scan.axis != 0]
    outputs = [output for output in loop.scan_outputs if output.axis != 0]
    if not inputs and not outputs:
        return NOTHING_HERE
    for value, what in [*((scan.outer, "input") for scan in inputs), *((output.inner, "output") for output in outputs)]:
        if rank_of(value) is None:
            return NotApplicable("SCAN-RANK-UNKNOWN", f"scan {what} '{value.name}' has an axis other than 0 and no known rank")

    def edit() -> list[ir.Node]:
        build = ctx.builder()
        moved = {
            id(scan): replace(scan, outer=move_axis_first(build, scan.outer, scan.axis, rank_of(scan.outer) or 0), axis=0)
            for scan in inputs
        }
        build.insert_before(loop.node)
        fronted = {id(output): replace(output, outer=_new_stack(output, ctx), axis=0) for output in outputs}
        for output in outputs:
            stack = fronted[id(output)].outer
            assert stack is not None
            stacked = move_first_axis(build, stack, output.axis, (rank_of(output.inner) or 0) + 1)
            build.insert_after(loop.node)
            if output.outer is not None:
                replace_value(output.outer, stacked, ctx.names)
        scan_inputs = [moved.get(id(scan), scan) for scan in loop.scan_inputs]
        scan_outputs = [fronted.get(id(output), output) for output in loop.scan_outputs]
        return [rebuild(loop, ctx.names, scan_inputs=scan_inputs, scan_outputs=scan_outputs)]

    return Patch(f"moved {counted(len(inputs) + len(outputs), 'scanned axis', 'scanned axes')} to the front outside the loop", edit)


def _new_stack(output: ScanOutput, ctx: Context) -> ir.Value:
    """Return a new value for the stack of ``output`` with the steps as axis 0."""
    shape = None
    if output.outer is not None and output.outer.shape is not None:
        dims = list(output.outer.shape.dims)
        shape = ir.Shape([dims.pop(output.axis), *dims])
    return ir.Value(name=ctx.names.fresh(f"{output.inner.name}_steps"), type=output.inner.type, shape=shape)
