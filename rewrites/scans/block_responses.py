"""The responses of a linear system to the inputs and states of a block of steps, as constant matrices.

The coefficients of the system may differ from step to step. The matrices then differ from block to block. Axis 0 of each array is
the step or the block. It has one element if all of them are equal.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

__all__ = ["Matrices", "Responses", "largest_states"]

_POWERS_AT_ONCE = 256
_STEPS_AT_ONCE = (32, 256)
_ELEMENTS_AT_ONCE = 1024
_NEGLIGIBLE = 1e-60


@dataclass(frozen=True)
class Matrices:
    """The constants of a linear system with n states ``s``, m inputs ``x`` and k outputs ``y``.

    The system is ``s' = s @ step + x @ drive + state_bias`` and ``y = s @ readout + x @ feedthrough + output_bias``. Axis 0 of each
    array is the step. It has one element if the array is the same in all steps.

    Args:
        step: [steps, n, n].
        drive: [steps, m, n].
        state_bias: [steps, n].
        readout: [steps, n, k].
        feedthrough: [steps, m, k].
        output_bias: [steps, k].
    """

    step: np.ndarray
    drive: np.ndarray
    state_bias: np.ndarray
    readout: np.ndarray
    feedthrough: np.ndarray
    output_bias: np.ndarray

    @staticmethod
    def of_states(step: np.ndarray) -> "Matrices":
        """Return the system ``s' = s @ step + x`` and ``y = s``."""
        states = step.shape[1]
        none, eye = np.zeros((1, states, states)), np.eye(states)[None]
        return Matrices(step, eye, none[:, 0], eye, none, none[:, 0])

    @property
    def varies(self) -> bool:
        """Return True if the coefficients differ from step to step."""
        return any(len(part) > 1 for part in self._parts())

    def blocks(self, length: int) -> "Matrices":
        """Return the system with arrays [blocks, ``length``, ...].

        If all steps are equal, there is one block. The last block is padded with steps that change no state.
        """
        steps = max(len(part) for part in self._parts())
        missing = -steps % length if self.varies else 0
        eye = np.eye(self.step.shape[1])

        def in_blocks(part: np.ndarray) -> np.ndarray:
            if not self.varies:
                return np.broadcast_to(part, (1, length, *part.shape[1:]))
            padding = np.broadcast_to(eye if part is self.step else np.array(0.0), (missing, *part.shape[1:]))
            whole = np.concatenate([np.broadcast_to(part, (steps, *part.shape[1:])), padding])
            return whole.reshape(-1, length, *part.shape[1:])

        return Matrices(*map(in_blocks, self._parts()))

    def _parts(self) -> list[np.ndarray]:
        return [getattr(self, field.name) for field in fields(self)]


class Responses:
    """Provides matrices that map a block's inputs, and the states before it, to later states and outputs.

    Axis 0 of each matrix is the block. It has one element if all blocks are equal.

    Args:
        system: The coefficients of all steps.
        length: The number of steps of a block.
        inputs: The number of features of each input.
        widths: The number of features of each output.
    """

    def __init__(self, system: Matrices, length: int, inputs: Sequence[int], widths: Sequence[int]) -> None:
        self._system, self._length = system.blocks(length), length
        self._transitions = _transitions(self._system.step)
        self._inputs, self._outputs = _slices_of_widths(inputs), _slices_of_widths(widths)

    @property
    def powers(self) -> np.ndarray:
        """The matrices by which the blocks multiply the states, [blocks, n, n]."""
        return self._transitions[:, 0, -1]

    def added(self, steps: int) -> np.ndarray:
        """Return the matrices that map a block's inputs to their part of the states after ``steps`` steps."""
        added = np.zeros_like(self._system.drive)
        added[:, :steps] = self._system.drive[:, :steps] @ self._transitions[:, 1 : steps + 1, steps]
        blocks, states = len(added), added.shape[-1]
        return np.concatenate([added[:, :, rows].reshape(blocks, -1, states) for rows in self._inputs], axis=1)

    def states(self, steps: int) -> np.ndarray:
        """Return the matrices that map [inputs, states before the block] to the states after ``steps`` steps."""
        return np.concatenate([self.added(steps), self._transitions[:, 0, steps]], axis=1)

    def added_bias(self, steps: int) -> np.ndarray:
        """Return the part of the states after ``steps`` steps that comes from adding ``state_bias``.

        The axes are [blocks, n].
        """
        bias, later = self._system.state_bias[:, :steps], self._transitions[:, 1 : steps + 1, steps]
        added: np.ndarray = (bias[:, :, None] @ later).sum((1, 2))
        return added

    def outputs(self) -> np.ndarray:
        """Return the matrices that map [inputs, states before the block] to the outputs of all steps."""
        system, length = self._system, self._length
        blocks, _, inputs, outputs = system.feedthrough.shape
        toeplitz = np.zeros((blocks, length, inputs, length, outputs))
        for step in range(length):
            toeplitz[:, step, :, step] = system.feedthrough[:, step]
            if step:
                later = system.drive[:, :step] @ self._transitions[:, 1 : step + 1, step]
                toeplitz[:, :step, :, step] = later @ system.readout[:, None, step]
        states = (self._transitions[:, 0, :length] @ system.readout).transpose(0, 2, 1, 3)
        columns = list[np.ndarray]()
        for output in self._outputs:
            width = length * (output.stop - output.start)
            rows = [toeplitz[:, :, part][..., output].reshape(blocks, -1, width) for part in self._inputs]
            columns.append(np.concatenate([*rows, states[..., output].reshape(blocks, -1, width)], axis=1))
        return np.concatenate(columns, axis=2)

    def output_bias(self) -> np.ndarray:
        """Return the part of the outputs of all steps that comes from ``state_bias`` and ``output_bias``.

        The axes are [blocks, outputs].
        """
        system = self._system
        sums = np.stack([self.added_bias(step) for step in range(self._length)], axis=1)
        bias = (sums[:, :, None] @ system.readout)[:, :, 0] + system.output_bias
        return np.concatenate([bias[..., output].reshape(len(bias), -1) for output in self._outputs], axis=1)


def _transitions(step: np.ndarray) -> np.ndarray:
    """Return the products of the matrices ``step`` [blocks, length, n, n].

    The element [block, i, j] is the matrix that maps the states before step i to the states before step j >= i.
    """
    blocks, length, states, _ = step.shape
    result = np.zeros((blocks, length + 1, length + 1, states, states))
    with np.errstate(all="ignore"):
        for end in range(length + 1):
            result[:, end, end] = np.eye(states)
            if end:
                result[:, :end, end] = result[:, :end, end - 1] @ step[:, None, end - 1]
    return result


def _slices_of_widths(widths: Sequence[int]) -> list[slice]:
    return [slice(start, end) for start, end in itertools.pairwise(itertools.accumulate(widths, initial=0))]


def largest_states(system: Matrices, steps: int) -> np.ndarray:
    """Return a bound [n] of each state in all steps if no input or initial state exceeds 1 in magnitude."""
    added = np.abs(system.drive).sum(1) + np.abs(system.state_bias)
    if not system.varies:
        bound: np.ndarray = (added[0] + 1) @ _sum_of_powers(system.step[0], steps)
        return bound
    least, most_steps = _STEPS_AT_ONCE
    blocks = system.blocks(min(most_steps, max(least, _ELEMENTS_AT_ONCE // system.step.shape[1])))
    added = np.abs(blocks.drive).sum(2) + np.abs(blocks.state_bias)
    before, most = np.ones(system.step.shape[1]), np.ones(system.step.shape[1])
    for step, drives in zip(blocks.step, added, strict=True):
        transitions = np.abs(_transitions(step[None])[0])
        with np.errstate(all="ignore"):
            within = before @ transitions[0] + (drives[:, None, None] @ transitions[1:])[:, :, 0].sum(0)
        before, most = within[-1], np.maximum(most, within.max(0))
    return np.where(np.isfinite(most), most, np.inf)


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


def _sum_of_powers(step: np.ndarray, steps: int) -> np.ndarray:
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
