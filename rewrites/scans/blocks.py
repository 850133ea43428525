"""Cuts steps into blocks of equal length, and emits Scans over blocks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.builder import Builder
from rewrites.graph.dims import with_axes, without_axis
from rewrites.graph.marks import BLOCKS, OVER_BLOCKS
from rewrites.loops import ScanInput, ScanOutput, State, make_scan
from rewrites.ops.versions import concat, reshape, slice_axis

__all__ = ["BlockCut", "cut_steps", "reshape_first_axes", "reshape_with_axes_of", "scan_over_blocks", "states_before_blocks"]

_END = 2**63 - 1


@dataclass(frozen=True)
class BlockCut:
    """Describes how ``steps`` are cut into blocks of ``length`` steps.

    The last block is padded with ``missing`` steps. If the number of steps is only known at run time, ``steps`` and the numbers
    that depend on it are int64 tensors [1].

    Args:
        build: Collects the nodes.
        steps: The number of steps.
        length: The number of steps of a block.
        missing: The number of steps that pad the last block.
        rank: The number of axes of the stacks that are cut.
        padded_steps: The number of steps including the padding; None if ``steps`` is an int.
        pads: The operand ``pads`` for a Pad node that adds the missing steps; None if ``steps`` is an int.
    """

    build: Builder
    steps: int | ir.Value
    length: int
    missing: int | ir.Value
    rank: int
    padded_steps: ir.Value | None = None
    pads: ir.Value | None = None

    @property
    def blocks(self) -> int:
        """Return the number of blocks, or -1 if it is only known at run time."""
        return -(-self.steps // self.length) if isinstance(self.steps, int) else -1

    def count(self) -> int | ir.Value:
        """Return the number of blocks, as a tensor [1] if it is only known at run time."""
        return (
            self.blocks if self.padded_steps is None else self.build.op("Div", self.padded_steps, self.build.const([self.length]))
        )

    def pad(self, rows: ir.Value, fill: np.ndarray | None = None) -> ir.Value:
        """Return ``rows`` with the missing steps appended. Their elements are ``fill`` (default 0)."""
        if self.missing == 0:
            return rows
        number, ends = None if fill is None else self.build.const(fill), [0] * (self.rank - 1)
        pads = self.build.const([*ends, 0, self.missing, *ends]) if isinstance(self.missing, int) else self.pads
        return self.build.op("Pad", rows, pads, number)

    def trim(self, rows: ir.Value) -> ir.Value:
        """Return ``rows``, a stack of the steps of all blocks, without the padding at the end."""
        if isinstance(self.steps, int):
            return slice_axis(self.build, rows, 0, 0, self.steps) if self.missing else rows
        return self.build.op("Slice", rows, self.build.const([0]), self.steps, self.build.const([0]))


def cut_steps(build: Builder, steps: int | ir.Value, length: int, rank: int) -> BlockCut:
    """Cut ``steps`` into blocks of ``length`` steps, for stacks with ``rank`` axes."""
    if isinstance(steps, int):
        return BlockCut(build, steps, length, -steps % length, rank)
    missing = build.op("Mod", build.op("Neg", steps), build.const([length]))
    padded_steps = build.op("Add", steps, missing)
    pads = concat(build, [build.const([0] * rank), missing, build.const([0] * (rank - 1))], 0)
    return BlockCut(build, steps, length, missing, rank, padded_steps, pads)


def reshape_with_axes_of(
    build: Builder, value: ir.Value, leading_sizes: Sequence[int], like: ir.Value, dims: Sequence[int] | None
) -> ir.Value:
    """Reshape ``value`` to the axes ``leading_sizes``, followed by the axes of ``like``.

    ``dims``: the sizes of ``like``, if known.
    """
    if dims is not None:
        return reshape(build, value, [*leading_sizes, *dims])
    shape, allowzero = build.op("Shape", like), 1 if build.opset >= since.ALLOWZERO else None
    return build.op(
        "Reshape",
        value,
        concat(build, [build.const(list(leading_sizes)), shape], 0) if leading_sizes else shape,
        allowzero=allowzero,
    )


def reshape_first_axes(
    build: Builder,
    value: ir.Value,
    leading_sizes: Sequence[int],
    replaced: int,
    like: ir.Value,
    sizes: Sequence[ir.Value] | None = None,
) -> ir.Value:
    """Reshape the first ``replaced`` axes of ``value`` to ``leading_sizes``, and keep the other axes.

    Args:
        build: Collects the nodes.
        value: The tensor to reshape.
        leading_sizes: The new sizes. One of them may be -1, as in a Reshape.
        replaced: The number of axes to replace.
        like: A tensor whose other axes (from index ``replaced`` on) have the sizes of ``value``. Its declared shape is read.
        sizes: ``leading_sizes`` as int64 tensors. Required if rows may be empty.
    """
    dims = [None] if like.shape is None else [dim if isinstance(dim, int) and dim else None for dim in like.shape.dims[replaced:]]
    if dims.count(None) <= (sizes is None and -1 not in leading_sizes):
        return reshape(build, value, [*leading_sizes, *(dim or -1 for dim in dims)])
    front = [build.const(list(leading_sizes))] if sizes is None else sizes
    rest = slice_axis(build, build.op("Shape", value), 0, replaced, _END)
    return build.op("Reshape", value, concat(build, [*front, rest], 0), allowzero=None if sizes is None else 1)


def scan_over_blocks(
    build: Builder,
    initial: ir.Value,
    stacks: Sequence[ir.Value],
    step: Callable[..., tuple[ir.Value, Sequence[ir.Value]]],
    blocks: int | None = None,
    body_name: str = OVER_BLOCKS,
) -> tuple[ir.Value, ...]:
    """Emit a Scan with one step per block.

    Args:
        build: Collects the nodes.
        initial: The state before the first block.
        stacks: The scan inputs, with one row per block along axis 0.
        step: Emits the body: ``(builder, state before the block, *rows of stacks) -> (state after the block, values to stack)``.
        blocks: The number of blocks, if it is known.
        body_name: The name of the body.

    Returns:
        The state after the last block, followed by the stacked values.
    """
    names, inside = build.names, build.another()
    state = ir.Value(name=names.fresh("before"), type=initial.type, shape=initial.shape)
    rows = [ir.Value(name=names.fresh("block_in"), type=stack.type, shape=without_axis(stack.shape, 0)) for stack in stacks]
    after, outputs = step(inside, state, *rows)
    body = ir.Graph([], [], nodes=inside.nodes, name=names.fresh(body_name))
    inside.nodes = []
    reads = [ScanInput(stack, row) for stack, row in zip(stacks, rows, strict=True)]
    scan = make_scan(
        names, body, [State(initial, state, after, None)], reads, [ScanOutput(value, None) for value in outputs], "blocks"
    )
    BLOCKS.put(scan, True)
    for stack, value in zip(scan.outputs[1:], outputs, strict=True):
        stack.shape = with_axes(value.shape, 0, blocks)
    build.nodes.append(scan)
    return tuple(scan.outputs)


def states_before_blocks(build: Builder, initial: ir.Value, stacks: Sequence[ir.Value], step: Callable[..., ir.Value]) -> ir.Value:
    """Emit a Scan with one step per block, and return a stack of the states before each block.

    ``step``: Emits the body: ``(builder, state before the block, *rows of stacks) -> state after the block``.
    """

    def step_with_state(inside: Builder, state: ir.Value, *rows: ir.Value) -> tuple[ir.Value, Sequence[ir.Value]]:
        return step(inside, state, *rows), [inside.op("Identity", state)]

    return scan_over_blocks(build, initial, stacks, step_with_state)[1]
