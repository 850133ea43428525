"""What stands for the results of a loop that is a system of constants: its stacks for all steps, and the states after the last."""

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import static_dims
from rewrites.loops import ScanView
from rewrites.ops.versions import concat, reshape, split, turned
from rewrites.recurrences.linear.any_steps import AnySteps
from rewrites.recurrences.linear.filtered import Blocks, Matrices
from rewrites.recurrences.linear.system import System

__all__ = ["filtered"]


def filtered(
    loop: ScanView, system: System, inputs: Sequence[ir.Value], build: Builder, any_steps: ir.Value | None, ctx: Context
) -> list[ir.Value | None]:
    """Return the results of the loop, as nodes of ``build``; None for those that nobody wants.

    ``inputs``: what ``system`` reads, for all steps in the order in which they are made; ``any_steps``: how many there are, one
    int64, where that is not known, and then the sizes of a row are.
    """
    kind, dims = system.states[0].inner.dtype, static_dims(system.states[0].inner)
    assert kind is not None
    dtype, steps = np.dtype(kind.numpy()), loop.steps if isinstance(loop.steps, int) else -1
    rows = 1 if not system.is_elementwise else -1 if dims is None else math.prod(dims)
    matrices = Matrices(system.step, system.drive, system.more, system.seen, system.through, system.offset)
    parts = [(reshape(build, value, [steps, rows, size]), size) for value, size in zip(inputs, system.input_sizes, strict=True)]
    sizes = list(system.state_sizes)
    initial = concat(
        build, [reshape(build, one.initial, [1, rows, size]) for one, size in zip(system.states, sizes, strict=True)], 2
    )
    wanted = system.output_sizes, bool(system.kept)
    if any_steps is None:
        stacks, final = Blocks(build, rows, dtype).outputs(matrices, parts, initial, steps, *wanted)
    else:
        stacks, final = AnySteps(build, rows, dtype, ctx).of_any_steps(matrices, parts, initial, any_steps, *wanted)
    count = len(system.states)
    found: list[ir.Value | None] = [None] * count
    if final is not None:
        last = split(build, final, 2, sizes, count) if count > 1 else (final,)
        for place, state in enumerate(system.states):
            if state in system.kept:
                found[place] = _shaped(last[place], None, state.inner, state.initial, build)
    for output, stack in zip(system.outputs, stacks, strict=True):
        found.append(turned(build, _shaped(stack, steps, output.inner, system.states[0].initial, build), output.reverse))
    return found


def _shaped(value: ir.Value, steps: int | None, inner: ir.Value, like: ir.Value, build: Builder) -> ir.Value:
    """Return ``value`` in the shape of ``inner``, which is that of ``like`` where that is known at run time only."""
    dims, lead = static_dims(inner), [] if steps is None else [steps]
    if dims is not None:
        return reshape(build, value, [*lead, *dims])
    shape, allowzero = build.op("Shape", like), 1 if build.opset >= since.ALLOWZERO else None
    return build.op("Reshape", value, concat(build, [build.const(lead), shape], 0) if lead else shape, allowzero=allowzero)
