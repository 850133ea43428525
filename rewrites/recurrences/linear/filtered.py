"""The outputs of a constant system for all steps at once: blocks of steps by one product each with what the system does to them.

    X [blocks, rows, k * m]    E = X W                  what each block alone leaves in the states
                               Z = the states before each block: the same system over blocks, with what ``step`` is over k steps
                               Y = [X, Z] V             V: responses to what comes in (a Toeplitz matrix), and to the states

Each product mixes what comes later into what came before, times 0: for numbers only. What is not finite must not come here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.ops.versions import concat, reshape, slice_axis, split, transpose
from rewrites.recurrences.linear.impulses import powers

__all__ = ["Blocks", "Matrices", "Part", "Responses", "block_length"]

_DENSE = 96
_LEAST, _SHORT, _LONG = 4, 32, 64
_MANY = 4096


def block_length(steps: int, width: int) -> int:
    """Return how many steps a block has, where each has ``width`` numbers."""
    if steps * width <= _DENSE:
        return steps
    return min(steps, max(_LEAST, (_LONG if steps * width >= _MANY else _SHORT) // width))


@dataclass(frozen=True)
class Matrices:
    """A system without its loop; see ``System``."""

    step: np.ndarray
    drive: np.ndarray
    more: np.ndarray
    seen: np.ndarray
    through: np.ndarray
    offset: np.ndarray


Part = tuple[ir.Value, int]
"""A stack [steps, rows, features], and the number of its features."""


class Blocks:
    """Writes nodes to ``build``; ``rows``: how many there are, -1 for a number known at run time; numbers are of ``dtype``."""

    def __init__(self, build: Builder, rows: int, dtype: np.dtype) -> None:
        self._build, self._rows, self._dtype = build, rows, dtype

    def outputs(
        self, system: Matrices, parts: Sequence[Part], initial: ir.Value, steps: int, widths: Sequence[int], is_final: bool
    ) -> tuple[list[ir.Value], ir.Value | None]:
        """Return the outputs of ``widths`` features, and the states [1, rows, n] after the last step where ``is_final``.

        ``initial``: the states before the first step, [1, rows, n].
        """
        build, states = self._build, len(system.step)
        length = block_length(steps, max(states, *(width for _, width in parts), *widths, 1))
        blocks = -(-steps // length)
        responses = Responses(system, length, [width for _, width in parts], widths)
        missing = length * blocks - steps
        filled = [self._filled(value, build.const([0, 0, 0, missing, 0, 0])) if missing else value for value, _ in parts]
        cut = [self._cut(value, width, length, blocks) for value, (_, width) in zip(filled, parts, strict=True)]
        before = initial
        if blocks > 1:
            left = self._plus(self._product(concat(build, cut, 2), responses.left(length)), responses.left_more(length))
            whole = np.zeros((states, states))
            many = Matrices(responses.powers[length], np.eye(states), whole[0], np.eye(states), whole, whole[0])
            (before,), _ = self.outputs(many, [(left, states)], initial, blocks, [states], False)
        read = concat(build, [*cut, before], 2)
        final = self._final(read, responses, steps - (blocks - 1) * length, blocks) if is_final else None
        if not widths:
            return [], final
        made = self._plus(self._product(read, responses.made()), responses.made_more())
        pieces = split(build, made, 2, [length * width for width in widths], len(widths)) if len(widths) > 1 else (made,)
        stacks = [self._joined(one, width, length, blocks) for one, width in zip(pieces, widths, strict=True)]
        return [slice_axis(build, stack, 0, 0, steps) if missing else stack for stack in stacks], final

    def _final(self, read: ir.Value, responses: "Responses", steps: int, blocks: int) -> ir.Value:
        last = slice_axis(self._build, read, 0, blocks - 1, blocks) if blocks > 1 else read
        weights = np.concatenate([responses.left(steps), responses.powers[steps]])
        return self._plus(self._product(last, weights), responses.left_more(steps))

    def _product(self, value: ir.Value, weights: np.ndarray) -> ir.Value:
        return self._build.op("MatMul", value, self._number(weights))

    def _number(self, weights: np.ndarray) -> ir.Value:
        kept = np.where(np.abs(weights) < np.finfo(self._dtype).tiny, 0, weights)
        return self._build.const(kept.astype(self._dtype))

    def _plus(self, value: ir.Value, numbers: np.ndarray) -> ir.Value:
        return self._build.op("Add", value, self._build.const(numbers.astype(self._dtype))) if numbers.any() else value

    def _filled(self, value: ir.Value, pads: ir.Value) -> ir.Value:
        return self._build.op("Pad", value, pads)

    def _cut(self, value: ir.Value, width: int, length: int, blocks: int) -> ir.Value:
        """Return a stack [steps, rows, width] as [blocks, rows, length * width]; -1 blocks: as many as there are."""
        build = self._build
        if self._rows == 1 or length == 1:
            return reshape(build, value, [blocks, self._rows, length * width])
        if width == 1:
            return transpose(build, reshape(build, value, [blocks, length, self._rows]), [0, 2, 1])
        turned = transpose(build, reshape(build, value, [blocks, length, self._rows, width]), [0, 2, 1, 3])
        return reshape(build, turned, [blocks, self._rows, length * width])

    def _joined(self, value: ir.Value, width: int, length: int, blocks: int) -> ir.Value:
        """Return [blocks, rows, length * width] as a stack [blocks * length, rows, width]."""
        build = self._build
        if self._rows != 1 and length > 1:
            wide = value if width == 1 else reshape(build, value, [blocks, self._rows, length, width])
            value = transpose(build, wide, [0, 2, 1] if width == 1 else [0, 2, 1, 3])
        return reshape(build, value, [max(blocks * length, -1), self._rows, width])


class Responses:
    """What a system makes within ``length`` steps of parts of ``given`` features and of the states, for outputs of ``widths``."""

    def __init__(self, system: Matrices, length: int, given: Sequence[int], widths: Sequence[int]) -> None:
        self._system, self._length = system, length
        self.powers = powers(system.step, length + 1)
        self._given, self._made = _cuts(given), _cuts(widths)

    def left(self, steps: int) -> np.ndarray:
        """Return what is left in the states after the first ``steps`` steps of what comes in in all of them."""
        left = np.zeros((self._length, *self._system.drive.shape))
        left[:steps] = self._system.drive @ self.powers[:steps][::-1]
        return np.concatenate([left[:, rows].reshape(-1, left.shape[2]) for rows in self._given])

    def left_more(self, steps: int) -> np.ndarray:
        """Return what is left of what is always added."""
        left: np.ndarray = (self._system.more @ self.powers[:steps]).sum(0)
        return left

    def made(self) -> np.ndarray:
        """Return what the outputs make of what comes in, and behind it of the states before."""
        system, length = self._system, self._length
        delayed = np.concatenate([system.through[None], system.drive @ self.powers[: length - 1] @ system.seen])
        lag = np.arange(length)[None, :] - np.arange(length)[:, None]
        toeplitz = np.where((lag >= 0)[:, :, None, None], delayed[np.maximum(lag, 0)], 0).transpose(0, 2, 1, 3)
        states = (self.powers[:length] @ system.seen).transpose(1, 0, 2)
        columns = list[np.ndarray]()
        for made in self._made:
            rows = [toeplitz[:, given][..., made].reshape(-1, length * (made.stop - made.start)) for given in self._given]
            columns.append(np.concatenate([*rows, states[..., made].reshape(len(states), -1)]))
        return np.concatenate(columns, axis=1)

    def made_more(self) -> np.ndarray:
        """Return what the outputs make of what is always added."""
        system = self._system
        added = np.concatenate([np.zeros((1, len(system.more))), np.cumsum(system.more @ self.powers[: self._length - 1], axis=0)])
        whole = added @ system.seen + system.offset
        return np.concatenate([whole[:, made].reshape(-1) for made in self._made])


def _cuts(widths: Sequence[int]) -> list[slice]:
    ends = np.cumsum(widths).tolist()
    return [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]
