"""Computes the outputs of a linear system for all steps, by matrix products per block of steps.

    X [blocks, rows, k * m]    the inputs of all steps, in blocks of k steps
    E = X W                    what the inputs of each block add to the states after the block
    Z                          the states before each block, from a linear system with one step per block: z' = z @ step ** k + e
    Y = [X, Z] V               the outputs; V holds the responses to the inputs (a Toeplitz matrix) and to the states

For each step, the product with V multiplies the inputs of later steps by 0. Because 0 times infinity is NaN, the caller must
exclude infinities and NaN. If the number of steps is unknown, blocks have a fixed length, and a Scan iterates over blocks of
blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.ops.versions import concat, reshape, slice_axis, split, transpose
from rewrites.scans.blocks import BlockCut, cut_steps, states_before_blocks

__all__ = ["Matrices", "SystemBlocks", "block_length", "sum_of_powers"]

_ONE_BLOCK_SIZE = 96
_MIN_LENGTH, _SHORT_BLOCK_SIZE, _LONG_BLOCK_SIZE = 4, 32, 64
_LONG_FROM = 4096
_LENGTHS = (64, 16)
"""If the number of steps is unknown: steps times width for a block, and for a block of blocks."""
_END = 2**63 - 1
_POWERS_AT_ONCE = 256
_NEGLIGIBLE = 1e-60

Part = tuple[ir.Value, int]
"""A stack [steps, rows, features], and the number of features."""


def block_length(steps: int, width: int) -> int:
    """Return a suitable number of steps in a block if each step has ``width`` numbers."""
    if steps * width <= _ONE_BLOCK_SIZE:
        return steps
    return min(steps, max(_MIN_LENGTH, (_LONG_BLOCK_SIZE if steps * width >= _LONG_FROM else _SHORT_BLOCK_SIZE) // width))


@dataclass(frozen=True)
class Matrices:
    """The constants of a linear system with n states ``s``, m inputs ``x`` and k outputs ``y``.

    The system is ``s' = s @ step + x @ drive + state_bias`` and ``y = s @ readout + x @ feedthrough + output_bias``.

    Args:
        step: [n, n].
        drive: [m, n].
        state_bias: [n].
        readout: [n, k].
        feedthrough: [m, k].
        output_bias: [k].
    """

    step: np.ndarray
    drive: np.ndarray
    state_bias: np.ndarray
    readout: np.ndarray
    feedthrough: np.ndarray
    output_bias: np.ndarray


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
        build, states = self._build, len(system.step)
        widest = max(states, *(width for _, width in inputs), *widths, 1)
        length = block_length(steps, widest) if isinstance(steps, int) else max(_MIN_LENGTH, _LENGTHS[level] // widest)
        cut, responses = cut_steps(build, steps, length, 3), _Responses(system, length, [width for _, width in inputs], widths)
        blocks = [self._to_blocks(cut.pad(value), width, cut) for value, width in inputs]
        states_before = initial
        if cut.blocks != 1:
            added = self._add(self._product(concat(build, blocks, 2), responses.added(length)), responses.added_bias(length))
            states_before = self._before_blocks(added, initial, cut.count(), responses.powers[length], level + 1)
        block_values = concat(build, [*blocks, states_before], 2)
        final = self._final(block_values, responses, cut) if is_final else None
        if not widths:
            return [], final
        produced = self._add(self._product(block_values, responses.outputs()), responses.output_bias())
        outputs = split(build, produced, 2, [length * width for width in widths], len(widths)) if len(widths) > 1 else (produced,)
        return [cut.trim(self._to_stack(piece, width, cut)) for piece, width in zip(outputs, widths, strict=True)], final

    def _before_blocks(self, added: ir.Value, initial: ir.Value, blocks: int | ir.Value, power: np.ndarray, level: int) -> ir.Value:
        """Return the states before each block, [blocks, rows, n].

        ``added``: what each block adds to the states after it. ``power``: the matrix by which each block multiplies the states.
        """
        build, states = self._build, len(power)
        if isinstance(blocks, int) or level < len(_LENGTHS):
            none = np.zeros((states, states))
            system = Matrices(power, np.eye(states), none[0], np.eye(states), none, none[0])
            (before,), _ = self.outputs(system, [(added, states)], initial, blocks, [states], False, level)
            return before
        weights = build.const(power.astype(self._dtype))

        def step(inside: Builder, state: ir.Value, row: ir.Value) -> ir.Value:
            return inside.op("Add", inside.op("Mul" if states == 1 else "MatMul", state, weights), row)

        return states_before_blocks(build, reshape(build, initial, [self._rows, states]), [added], step)

    def _final(self, block_values: ir.Value, responses: "_Responses", cut: BlockCut) -> ir.Value:
        """Return the states [1, rows, n] after the last step, not after the padding of the last block."""
        build = self._build
        if isinstance(cut.missing, int):
            last = slice_axis(build, block_values, 0, cut.blocks - 1, cut.blocks) if cut.blocks > 1 else block_values
            steps = cut.length - cut.missing
            return self._add(self._product(last, responses.states(steps)), responses.added_bias(steps))
        counts = range(cut.length, 0, -1)
        weights, bias = (np.stack([part(count) for count in counts]) for part in (responses.states, responses.added_bias))
        last = slice_axis(build, block_values, 0, -1, _END)
        final = build.op("MatMul", last, build.op("Gather", self._constant(weights), cut.missing, axis=0))
        return build.op("Add", final, build.op("Gather", self._constant(bias), cut.missing, axis=0)) if bias.any() else final

    def _product(self, value: ir.Value, weights: np.ndarray) -> ir.Value:
        return self._build.op("MatMul", value, self._constant(weights))

    def _constant(self, weights: np.ndarray) -> ir.Value:
        kept = np.where(np.abs(weights) < np.finfo(self._dtype).tiny, 0, weights)
        return self._build.const(kept.astype(self._dtype))

    def _add(self, value: ir.Value, numbers: np.ndarray) -> ir.Value:
        return self._build.op("Add", value, self._build.const(numbers.astype(self._dtype))) if numbers.any() else value

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


class _Responses:
    """Provides matrices that map a block's inputs, and the states before it, to later states and outputs."""

    def __init__(self, system: Matrices, length: int, inputs: Sequence[int], widths: Sequence[int]) -> None:
        self._system, self._length = system, length
        self.powers = _powers(system.step, length + 1)
        self._inputs, self._outputs = _slices_of_widths(inputs), _slices_of_widths(widths)

    def added(self, steps: int) -> np.ndarray:
        """Return the matrix that maps a block's inputs to their part of the states after ``steps`` steps."""
        added = np.zeros((self._length, *self._system.drive.shape))
        added[:steps] = self._system.drive @ self.powers[:steps][::-1]
        return np.concatenate([added[:, rows].reshape(-1, added.shape[2]) for rows in self._inputs])

    def states(self, steps: int) -> np.ndarray:
        """Return the matrix that maps [inputs, states before the block] to the states after ``steps`` steps."""
        return np.concatenate([self.added(steps), self.powers[steps]])

    def added_bias(self, steps: int) -> np.ndarray:
        """Return the part of the states after ``steps`` steps that comes from adding ``state_bias``."""
        added: np.ndarray = (self._system.state_bias @ self.powers[:steps]).sum(0)
        return added

    def outputs(self) -> np.ndarray:
        """Return the matrix that maps [inputs, states before the block] to the outputs of all steps."""
        system, length = self._system, self._length
        delayed = np.concatenate([system.feedthrough[None], system.drive @ self.powers[: length - 1] @ system.readout])
        lag = np.arange(length)[None, :] - np.arange(length)[:, None]
        toeplitz = np.where((lag >= 0)[:, :, None, None], delayed[np.maximum(lag, 0)], 0).transpose(0, 2, 1, 3)
        states = (self.powers[:length] @ system.readout).transpose(1, 0, 2)
        columns = list[np.ndarray]()
        for output in self._outputs:
            rows = [toeplitz[:, part][..., output].reshape(-1, length * (output.stop - output.start)) for part in self._inputs]
            columns.append(np.concatenate([*rows, states[..., output].reshape(len(states), -1)]))
        return np.concatenate(columns, axis=1)

    def output_bias(self) -> np.ndarray:
        """Return the part of the outputs of all steps that comes from ``state_bias`` and ``output_bias``."""
        system = self._system
        sums = np.concatenate(
            [np.zeros((1, len(system.state_bias))), np.cumsum(system.state_bias @ self.powers[: self._length - 1], axis=0)]
        )
        bias = sums @ system.readout + system.output_bias
        return np.concatenate([bias[:, output].reshape(-1) for output in self._outputs])


def _slices_of_widths(widths: Sequence[int]) -> list[slice]:
    ends = np.cumsum(widths).tolist()
    return [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]


def _powers(step: np.ndarray, count: int) -> np.ndarray:
    """Return the powers 0 to ``count`` - 1 of the matrix ``step``, [count, n, n]. They may overflow."""
    result = np.empty((count, *step.shape))
    result[0] = np.eye(len(step))
    done = 1
    with np.errstate(all="ignore"):
        while done < count:
            more = min(done, count - done)
            result[done : done + more] = result[:more] @ (result[done - 1] @ step)
            done += more
    return result


def sum_of_powers(step: np.ndarray, steps: int) -> np.ndarray:
    """Return the sum of ``abs(step ** i)`` over the first ``steps`` powers or more; infinity on overflow."""
    first = _powers(step, min(steps, _POWERS_AT_ONCE))
    total, power = np.zeros_like(step), np.eye(len(step))
    with np.errstate(all="ignore"):
        next_power = first[-1] @ step
        for _ in range(-(-steps // _POWERS_AT_ONCE)):
            total = total + np.abs(power @ first).sum(0)
            power = power @ next_power
            if not np.isfinite(total).all():
                return np.full_like(step, np.inf)
            if np.abs(power).max() < _NEGLIGIBLE:
                break
    return total
