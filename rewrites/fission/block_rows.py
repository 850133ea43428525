"""Cuts a stack [T, ...] into blocks [count, size, ...] and joins blocks again; the last row is repeated to fill the last block."""

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.builder import Builder
from rewrites.graph.values import rank_of
from rewrites.loops import ScanView
from rewrites.ops.versions import concat, gather, shape_of, slice_axis, unsqueeze

__all__ = ["BlockRows", "block_rows", "fixed_rows", "from_blocks", "to_blocks"]

_END = 2**63 - 1


@dataclass(frozen=True)
class BlockRows:
    """``size``: steps in a block, a one-element int64 tensor; ``known_size`` and ``known_steps`` are None where not known.

    ``count``: the number of blocks, likewise. ``filling``: the numbers of the rows that fill the last block; None where the blocks
    come out even.
    """

    size: ir.Value
    count: ir.Value
    filling: ir.Value | None
    known_size: int | None = None
    known_steps: int | None = None


def fixed_rows(build: Builder, steps: int, most: int) -> BlockRows:
    """Cut ``steps`` rows into blocks of at most ``most``, as even as can be."""
    count = -(-steps // most)
    size = -(-steps // count)
    missing = count * size - steps
    filling = build.const([steps - 1] * missing) if missing else None
    return BlockRows(build.const([size]), build.const([count]), filling, size, steps)


def block_rows(
    build: Builder, loop: ScanView, steps: ir.Value, most: int | None, sources: Sequence[ir.Value], unit: int, cache: int
) -> BlockRows:
    """Let the model find the block size: ``most``, or ``cache`` bytes by what one step takes; at least 1, at most all steps."""
    one = build.const([1])
    if most is not None:
        wanted = build.const([most])
    else:
        divisor = _larger(build, steps, one)
        elements = [_elements(build, value, loop, divisor) for value in sources]
        total = elements[0] if elements else one
        for more in elements[1:]:
            total = build.op("Add", total, more)
        taken = _larger(build, build.op("Mul", total, build.const([unit])), one)
        wanted = _larger(build, build.op("Div", build.const([cache]), taken), one)
    wanted = _larger(build, _smaller(build, wanted, steps), one)
    count = _larger(build, _divide_up(build, steps, wanted, one), one)
    size = _divide_up(build, steps, count, one)
    missing = build.op("Sub", build.op("Mul", count, size), steps)
    return BlockRows(size, count, build.op("Expand", build.op("Sub", steps, one), missing))


def to_blocks(build: Builder, value: ir.Value, rows: BlockRows) -> ir.Value:
    """Reshape [T, ...] to [count, size, ...]."""
    rest = _sizes_from(build, value, 1)
    if rows.filling is not None:
        value = concat(build, [value, gather(build, value, rows.filling, 0)], 0)
    return _reshape(build, value, [rows.count, rows.size, *rest])


def from_blocks(build: Builder, value: ir.Value, rows: BlockRows, steps: ir.Value) -> ir.Value:
    """Reshape [count, size, ...] back to [T, ...]."""
    rest = _sizes_from(build, value, 2)
    flat = _reshape(build, value, [build.op("Mul", rows.count, rows.size), *rest])
    if rows.known_steps is not None:
        return flat if rows.filling is None else slice_axis(build, flat, 0, 0, rows.known_steps)
    return build.op("Slice", flat, build.const([0]), steps, build.const([0]))


def _sizes_from(build: Builder, value: ir.Value, axis: int) -> list[ir.Value]:
    """Return the sizes of ``value`` from ``axis`` on."""
    rank = rank_of(value)
    if rank is None:
        return [slice_axis(build, build.op("Shape", value), 0, axis, _END)]
    return [shape_of(build, value, each) for each in range(axis, rank)]


def _reshape(build: Builder, value: ir.Value, dims: Sequence[ir.Value]) -> ir.Value:
    """Reshape to dimensions each of which may be 0: then -1 is ambiguous, and 0 must not mean "as before"."""
    return build.op("Reshape", value, concat(build, list(dims), 0), allowzero=1 if build.opset >= since.ALLOWZERO else None)


def _elements(build: Builder, value: ir.Value, loop: ScanView, steps: ir.Value) -> ir.Value:
    scan = next((scan for scan in loop.scan_inputs if scan.inner is value), None)
    count = unsqueeze(build, build.op("Size", value if scan is None else scan.outer), [0])
    return count if scan is None else build.op("Div", count, steps)


def _divide_up(build: Builder, number: ir.Value, by: ir.Value, one: ir.Value) -> ir.Value:
    return build.op("Div", build.op("Sub", build.op("Add", number, by), one), by)


def _smaller(build: Builder, left: ir.Value, right: ir.Value) -> ir.Value:
    """Min of integers, which Min itself takes from opset 12 on only."""
    return build.op("Where", build.op("Less", left, right), left, right)


def _larger(build: Builder, left: ir.Value, right: ir.Value) -> ir.Value:
    return build.op("Where", build.op("Less", left, right), right, left)
