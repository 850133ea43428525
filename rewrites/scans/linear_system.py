"""Computes the outputs of a linear system for all steps, by matrix products per block of steps.

    X [blocks, rows, k * m]    the inputs of all steps, in blocks of k steps
    E = X W                    what the inputs of each block add to the states after the block
    Z                          the states before each block, from a linear system with one step per block: z' = z @ step ** k + e
    Y = [X, Z] V               the outputs; V holds the responses to the inputs (a Toeplitz matrix) and to the states

The coefficients of the system may differ from step to step, and the matrices from block to block (``scans/block_responses.py``).

For each step, the product with V multiplies the inputs of later steps by 0. Because 0 times infinity is NaN, the caller must
exclude infinities and NaN. If the number of steps is unknown, blocks have a fixed length, and a Scan iterates over blocks of
blocks.
"""

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.ops.versions import concat, reshape, slice_axis, split, transpose
from rewrites.scans.block_responses import Matrices, Responses
from rewrites.scans.blocks import BlockCut, cut_steps, states_before_blocks

__all__ = ["SystemBlocks", "block_length", "varying_ns"]

_ONE_BLOCK_SIZE = 96
_MIN_LENGTH, _MIN_VARYING_LENGTH, _SHORT_BLOCK_SIZE, _LONG_BLOCK_SIZE = 4, 8, 32, 64
_LONG_FROM = 4096
_BLOCK_NS, _COEFFICIENT_NS = 300, 0.15
"""The cost in ns of the two products of a block, and of a coefficient, if they differ from block to block."""
_LENGTHS = (64, 16)
"""If the number of steps is unknown: steps times width for a block, and for a block of blocks."""
_END = 2**63 - 1

Part = tuple[ir.Value, int]
"""A stack [steps, rows, features], and the number of features."""


def block_length(system: Matrices, steps: int, width: int, rows: int) -> int:
    """Return a suitable number of steps in a block.

    Args:
        system: The system.
        steps: The number of steps.
        width: The largest number of states, inputs or outputs in a step.
        rows: The number of independent rows in each step.
    """
    if system.varies:
        products = max(rows, 1) * max(1, math.prod(system.feedthrough.shape[1:]))
        length = round(math.sqrt(_BLOCK_NS / (_COEFFICIENT_NS * products)))
        return min(steps, max(_MIN_VARYING_LENGTH, min(_LONG_BLOCK_SIZE, length)))
    if steps * width <= _ONE_BLOCK_SIZE:
        return steps
    return min(steps, max(_MIN_LENGTH, (_LONG_BLOCK_SIZE if steps * width >= _LONG_FROM else _SHORT_BLOCK_SIZE) // width))


def varying_ns(system: Matrices, length: int, coefficients: int, steps: int) -> float:
    """Return the extra cost of ``coefficients`` in each step if they differ from block to block, in ns."""
    return steps * (_BLOCK_NS / length + _COEFFICIENT_NS * coefficients) if system.varies else 0.0


class SystemBlocks:
    """Emits the nodes of a linear system into ``build``, with constants of ``dtype``.

    ``rows``: the number of independent rows in each step; -1 if it is only known at run time.
    """

    def __init__(self, build: Builder, rows: int, dtype: np.dtype) -> None:
        self._build, self._rows, self._dtype = build, rows, dtype

    def outputs(
        self,
        system: Matrices,
        inputs: Sequence[Part],
        initial: ir.Value,
        steps: int | ir.Value,
        widths: Sequence[int],
        is_final: bool,
        level: int = 0,
    ) -> tuple[list[ir.Value], ir.Value | None]:
        """Return the outputs of all steps, and the states [1, rows, n] after the last step if ``is_final``.

        Args:
            inputs: The inputs of the system for all steps, as pairs (stack, number of features).
            initial: The states before the first step, [1, rows, n].
            steps: The number of steps, at least 1. If it is an int64 tensor [1], the number of rows must be known.
            widths: The number of features of each output.
            level: The depth of the recursion: 0 for steps, 1 for blocks, and so on.
        """
        build, states = self._build, system.step.shape[1]
        widest = max(states, *(width for _, width in inputs), *widths, 1)
        if isinstance(steps, int):
            length = block_length(system, steps, widest, self._rows)
        else:
            length = max(_MIN_LENGTH, _LENGTHS[level] // widest)
        cut, responses = cut_steps(build, steps, length, 3), Responses(system, length, [width for _, width in inputs], widths)
        blocks = [self._to_blocks(cut.pad(value), width, cut) for value, width in inputs]
        states_before = initial
        if cut.blocks != 1:
            added = self._add(self._product(concat(build, blocks, 2), responses.added(length)), responses.added_bias(length))
            states_before = self._before_blocks(added, initial, cut.count(), responses.powers, level + 1)
        block_values = concat(build, [*blocks, states_before], 2)
        final = self._final(block_values, responses, cut) if is_final else None
        if not widths:
            return [], final
        produced = self._add(self._product(block_values, responses.outputs()), responses.output_bias())
        outputs = split(build, produced, 2, [length * width for width in widths], len(widths)) if len(widths) > 1 else (produced,)
        return [cut.trim(self._to_stack(piece, width, cut)) for piece, width in zip(outputs, widths, strict=True)], final

    def _before_blocks(
        self, added: ir.Value, initial: ir.Value, blocks: int | ir.Value, powers: np.ndarray, level: int
    ) -> ir.Value:
        """Return the states before each block, [blocks, rows, n].

        ``added``: what each block adds to the states after it. ``powers``: the matrices by which the blocks multiply the states.
        """
        build, states = self._build, powers.shape[1]
        if isinstance(blocks, int) or level < len(_LENGTHS):
            (before,), _ = self.outputs(Matrices.of_states(powers), [(added, states)], initial, blocks, [states], False, level)
            return before
        weights = self._constant(powers)

        def step(inside: Builder, state: ir.Value, row: ir.Value) -> ir.Value:
            return inside.op("Add", inside.op("Mul" if states == 1 else "MatMul", state, weights), row)

        return states_before_blocks(build, reshape(build, initial, [self._rows, states]), [added], step)

    def _final(self, block_values: ir.Value, responses: Responses, cut: BlockCut) -> ir.Value:
        """Return the states [1, rows, n] after the last step, not after the padding of the last block."""
        build = self._build
        if isinstance(cut.missing, int):
            last = slice_axis(build, block_values, 0, cut.blocks - 1, cut.blocks) if cut.blocks > 1 else block_values
            steps = cut.length - cut.missing
            return self._add(self._product(last, responses.states(steps)[-1:]), responses.added_bias(steps)[-1:])
        counts = range(cut.length, 0, -1)
        weights, bias = (np.concatenate([part(count) for count in counts]) for part in (responses.states, responses.added_bias))
        last = slice_axis(build, block_values, 0, -1, _END)
        final = build.op("MatMul", last, build.op("Gather", self._constant(weights), cut.missing, axis=0))
        return build.op("Add", final, build.op("Gather", self._constant(bias), cut.missing, axis=0)) if bias.any() else final

    def _product(self, value: ir.Value, weights: np.ndarray) -> ir.Value:
        return self._build.op("MatMul", value, self._constant(weights))

    def _constant(self, weights: np.ndarray) -> ir.Value:
        """Return ``weights`` [blocks, ...] as a constant. Axis 0 is dropped if it has one element."""
        kept = np.where(np.abs(weights) < np.finfo(self._dtype).tiny, 0, weights)
        return self._build.const((kept[0] if len(kept) == 1 else kept).astype(self._dtype))

    def _add(self, value: ir.Value, numbers: np.ndarray) -> ir.Value:
        if not numbers.any():
            return value
        rows = numbers[0] if len(numbers) == 1 else numbers[:, None]
        return self._build.op("Add", value, self._build.const(rows.astype(self._dtype)))

    def _to_blocks(self, value: ir.Value, width: int, cut: BlockCut) -> ir.Value:
        """Reshape a stack [steps, rows, width] to [blocks, rows, length * width]."""
        build, blocks, length = self._build, cut.blocks, cut.length
        if self._rows == 1 or length == 1:
            return reshape(build, value, [blocks, self._rows, length * width])
        if width == 1:
            return transpose(build, reshape(build, value, [blocks, length, self._rows]), [0, 2, 1])
        turned = transpose(build, reshape(build, value, [blocks, length, self._rows, width]), [0, 2, 1, 3])
        return reshape(build, turned, [blocks, self._rows, length * width])

    def _to_stack(self, value: ir.Value, width: int, cut: BlockCut) -> ir.Value:
        """Reshape a tensor [blocks, rows, length * width] to a stack [blocks * length, rows, width]."""
        build, blocks, length = self._build, cut.blocks, cut.length
        if self._rows != 1 and length > 1:
            wide = value if width == 1 else reshape(build, value, [blocks, self._rows, length, width])
            value = transpose(build, wide, [0, 2, 1] if width == 1 else [0, 2, 1, 3])
        return reshape(build, value, [max(blocks * length, -1), self._rows, width])
