"""A loop without a recurrence whose temporaries are much larger than its results runs in blocks of steps.

    ds = Scan(xs) body(x) => ReduceSum(Mul(Sub(Y, x), Sub(Y, x)))    # [T] results, but [T, N, D] temporaries at once
    ->    Scan over blocks of K steps, with the body for K steps at once inside

The last block is filled up by repeating the last row, whose results are cut off again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.builder import Builder
from rewrites.context import Context
from rewrites.fission.before import Before
from rewrites.fission.sizes import StepSizes
from rewrites.fission.stacks import Stacks
from rewrites.loops import ScanInput, ScanOutput, ScanView, make_scan
from rewrites.moving import remove_nodes
from rewrites.normal_form.own_outputs import give_own_nodes
from rewrites.not_applicable import NotApplicable
from rewrites.replace import replace_value
from rewrites.rule import Patch
from rewrites.spelling import concat, shape_of, slice_axis
from rewrites.values import rank_of

__all__ = ["Blocks", "choose_blocks", "in_blocks"]

_CACHE_BYTES = 1 << 20
_WHOLE_BYTES = 1 << 21
_INTEGER_MAX_SINCE = 12


@dataclass(frozen=True)
class Blocks:
    """The number of steps in one block, and the bytes of the largest temporary of one step."""

    steps: int
    step_bytes: int


def choose_blocks(loop: ScanView, before: Before, sizes: StepSizes) -> Blocks | NotApplicable | None:
    """Say how many steps to do at once: all (None), or so many that the temporaries stay in the processor's cache."""
    values = [value for node in before.nodes for value in node.outputs]
    largest = max(map(sizes.step, values), default=0)
    io = [*(scan.inner for scan in loop.scan_inputs), *(output.inner for output in loop.scan_outputs)]
    blown_up = largest > 2 * max(map(sizes.step, io), default=1)
    if not blown_up or largest * sizes.steps <= _WHOLE_BYTES:
        return None
    count = _CACHE_BYTES // largest
    if loop.states or count < 2 or rank_of(loop.scan_inputs[0].outer) is None or sizes.options.memory_budget < count * largest:
        detail = f"one step makes temporaries of about {largest} bytes, so doing several at once gains nothing"
        return NotApplicable("COST-LARGE-STEPS", detail)
    return Blocks(count, largest)


def in_blocks(loop: ScanView, blocks: Blocks, ctx: Context) -> Patch | NotApplicable:
    """Make the patch that runs ``loop`` in blocks."""
    if ctx.opset < _INTEGER_MAX_SINCE:
        return NotApplicable("BLOCKS-OPSET", f"running in blocks needs opset {_INTEGER_MAX_SINCE}, the model has {ctx.opset}")
    build = ctx.builder()
    inner = ctx.builder()
    backwards = all(scan.reverse for scan in loop.scan_inputs)
    steps = shape_of(build, loop.scan_inputs[0].outer, 0)
    known = loop.steps if isinstance(loop.steps, int) else None
    size = blocks.steps
    if known is not None:
        count = -(-known // size)
        size = -(-known // count)
    scans, body_scans = [], []
    for scan in loop.scan_inputs:
        outer = scan.outer if scan.reverse == backwards else slice_axis(build, scan.outer, 0, -1, -(2**63 - 1), -1)
        blocked = _cut(build, outer, steps, known, size)
        shape = None if scan.inner.shape is None else ir.Shape([size, *scan.inner.shape.dims])
        value = ir.Value(name=ctx.names.fresh(f"{scan.inner.name}_block"), type=scan.inner.type, shape=shape)
        scans.append(ScanInput(blocked, value))
        body_scans.append(ScanInput(value, scan.inner))
    view = ScanView(loop.node, loop.body, (), tuple(body_scans), loop.scan_outputs, False, None)
    stacks = Stacks(view, inner)
    for node in loop.body:
        refusal = stacks.add(node)
        if refusal is not None:
            build.discard()
            inner.discard()
            return refusal
    outputs = [ScanOutput(stacks.full(output.inner), None) for output in loop.scan_outputs]

    def edit() -> list[ir.Node]:
        body = ir.Graph([], [], nodes=inner.nodes, name=ctx.names.fresh("block"))
        inner.nodes = []
        node = make_scan(ctx.names, body, [], scans, outputs, loop.node.name or "scan")
        give_own_nodes(body, ctx.names)
        node.meta.update(loop.node.meta)
        node.meta["blocks"] = True
        build.insert_before(loop.node)
        assert loop.node.graph is not None
        loop.node.graph.insert_before(loop.node, node)
        for output, result in zip(loop.scan_outputs, node.outputs, strict=True):
            rank = rank_of(output.inner)
            result.shape = None if rank is None else ir.Shape([None, *([None] * (rank + 1))])
            joined = _join(build, result, rank, steps, known)
            if output.reverse != backwards:
                joined = slice_axis(build, joined, 0, -1, -(2**63 - 1), -1)
            build.insert_before(loop.node)
            if output.outer is not None:
                replace_value(output.outer, joined, ctx.names)
        remove_nodes([loop.node])
        return [node]

    note = f"temporaries of about {blocks.step_bytes} bytes a step: {size} steps at a time"
    return Patch(f"runs {size} steps at once, block by block", edit, (note,))


def _cut(build: Builder, value: ir.Value, steps: ir.Value, known: int | None, size: int) -> ir.Value:
    """Reshape [T, ...] to [blocks, size, ...], filling up with the last row."""
    if known is None or known % size:
        value = build.op("Gather", value, _filled_rows(build, steps, known, size), axis=0)
    rest: Sequence[ir.Value] = [shape_of(build, value, axis) for axis in range(1, rank_of(value) or 1)]
    return build.op("Reshape", value, concat(build, [build.const([-1, size]), *rest], 0))


def _filled_rows(build: Builder, steps: ir.Value, known: int | None, size: int) -> ir.Value:
    if known is not None:
        return build.const(np.minimum(np.arange(-(-known // size) * size), known - 1).astype(np.int64))
    one = build.const(1)
    scalar = build.op("Reshape", steps, build.const(np.zeros(0, np.int64)))
    total = build.op("Mul", build.op("Div", build.op("Add", scalar, build.const(size - 1)), build.const(size)), build.const(size))
    last = build.op("Sub", scalar, one)
    rows = build.op("Range", build.const(0), total, one)
    return build.op("Sub", last, build.op("Max", build.op("Sub", last, rows), build.const(0)))


def _join(build: Builder, value: ir.Value, rank: int | None, steps: ir.Value, known: int | None) -> ir.Value:
    """Reshape [blocks, size, ...] back to [T, ...]."""
    rest = [shape_of(build, value, axis) for axis in range(2, (rank or 0) + 2)]
    flat = build.op("Reshape", value, concat(build, [build.const([-1]), *rest], 0))
    if known is not None:
        return slice_axis(build, flat, 0, 0, known)
    return build.op("Slice", flat, build.const([0]), steps, build.const([0]))
