"""Computes the states of ``s' = decay * s + drive`` for all steps at once, in blocks of steps.

First, every block starts from state 0: step 1 of all blocks is computed at once, then step 2 of all blocks, and so on. Second, a
shorter recurrence of the same kind computes the states before the blocks. Its steps are the blocks, and its decays are the products
of all decays of a block. Third, if the decay varies from step to step, the steps of each block are computed again from the state
before the block. If the decay is constant, this state times a power of the decay is added to each step of the block instead. If the
number of steps is unknown, a Scan iterates over blocks of blocks.

An infinity or NaN affects only later steps, as in the loop. A power of the decay must not underflow to 0: an infinite state stays
infinite in the loop, but 0 times infinity is NaN. So each power is written as a product of nonzero factors, unless the decay is 0.
If such factors multiply a finite state, the result underflows to 0 as in the loop.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.values import shape_dims, static_dims
from rewrites.loops import State
from rewrites.ops.versions import concat, reshape, slice_axis, split, squeeze, transpose, unsqueeze
from rewrites.scans.blocks import cut_steps, reshape_with_axes_of, states_before_blocks

__all__ = ["ANY_STEPS", "Decay", "DecayBlocks", "Radices", "choose_levels", "choose_radices", "decayed_states"]

_NARROW = 8
_FLAT, _MOST_VARYING, _MOST_CONSTANT = 16, 12, 16
_MIN_EXPONENTS = {4: -125, 8: -1020}
"""The exponents (base 2) of the smallest normal numbers, by the size of a number in bytes."""
_MOST_FACTORS = 3
"""The largest number times this many of the smallest normal numbers underflows to 0."""


@dataclass(frozen=True)
class Radices:
    """The sizes of nested blocks, and the number of operators that they require.

    ``steps``: (8, 4), for example, means blocks of 8 steps, and outer blocks of 4 such blocks.
    """

    steps: tuple[int, ...]
    operators: int

    @property
    def rows(self) -> int:
        """Return the number of steps in the outermost block: 32 for ``steps`` (8, 4)."""
        return math.prod(self.steps)


ANY_STEPS = Radices((8, 8), 100)
"""The block sizes for an unknown number of steps. A Scan iterates over the blocks of blocks."""


@lru_cache(maxsize=4096)
def choose_radices(steps: int) -> Radices:
    """Return the block sizes for ``steps`` steps that need the fewest operators for a varying decay."""
    best = Radices((steps,), 2 * steps + 3)
    for radix in range(2, _MOST_VARYING + 1) if steps > _FLAT else ():
        rest = choose_radices(-(-steps // radix))
        operators = 5 * radix + 9 + rest.operators
        if operators < best.operators:
            best = Radices((radix, *rest.steps), operators)
    return best


def decayed_states(
    build: Builder, decays: ir.Value, drives: ir.Value, initial: ir.Value, radices: Sequence[int], steps: int | ir.Value
) -> ir.Value:
    """Return the states after each step if the decay varies from step to step.

    Args:
        decays, drives: The decay and the drive of each step, both [steps, numbers].
        initial: The state before the first step, [1, numbers].
        radices: The block sizes, see ``Radices.steps``.
        steps: The number of steps. If it is an int64 tensor [1], ``initial`` must have a static shape.
    """
    is_known = isinstance(steps, int)
    if not radices:
        stacks = [unsqueeze(build, decays, [1]), unsqueeze(build, drives, [1])]
        states_before = states_before_blocks(build, initial, stacks, _emit_step)
        return _emit_step(build, squeeze(build, states_before, [1]), decays, drives)
    radix, *rest = radices
    if isinstance(steps, int) and not rest:
        parts = [split(build, value, 0, None, steps) if steps > 1 else (value,) for value in (decays, drives)]
        return concat(build, _emit_steps(build, parts[0], parts[1], initial), 0)
    numbers, dtype = -1 if is_known else (static_dims(initial) or (0, 0))[1], drives.dtype
    assert dtype is not None
    cut, size = cut_steps(build, steps, radix, 2), -1 if is_known else radix * numbers
    padded = [cut.pad(decays, np.array(1, dtype.numpy())), cut.pad(drives)]
    blocks = (reshape(build, value, [cut.blocks, size]) for value in padded)
    decay_rows, drive_rows = (split(build, value, 1, None, radix) for value in (blocks if is_known else [*blocks]))
    drive, decay = _emit_steps(build, decay_rows[1:], drive_rows[1:], drive_rows[0])[-1], decay_rows[0]
    for row in decay_rows[1:]:
        decay = build.op("Mul", decay, row)
    states_after_blocks = decayed_states(build, decay, drive, initial, rest, cut.count())
    states_before = concat(build, [initial, slice_axis(build, states_after_blocks, 0, 0, cut.blocks - 1 if is_known else -1)], 0)
    states = concat(build, _emit_steps(build, decay_rows, drive_rows, states_before), 1)
    return cut.trim(reshape(build, states, [cut.blocks * radix if is_known else -1, numbers]))


def _emit_step(build: Builder, state: ir.Value, decay: ir.Value, drive: ir.Value) -> ir.Value:
    return build.op("Add", build.op("Mul", decay, state), drive)


def _emit_steps(build: Builder, decays: Sequence[ir.Value], drives: Sequence[ir.Value], state: ir.Value) -> list[ir.Value]:
    """Emit the steps one by one, starting from ``state``, and return the states after each step."""
    pairs = zip(decays, drives, strict=True)
    return [*itertools.accumulate(pairs, lambda before, pair: _emit_step(build, before, *pair), initial=state)][1:]


@lru_cache(maxsize=4096)
def choose_levels(rows: int) -> Radices:
    """Return block sizes that hold at least ``rows`` rows, with few operators for a constant decay."""
    if rows <= 1:
        return Radices((), 0)
    best: Radices | None = None
    for radix in range(2, min(rows, _MOST_CONSTANT) + 1):
        blocks = -(-rows // radix)
        rest = choose_levels(blocks)
        operators = 2 * radix + 1 + rest.operators + (5 if blocks > 1 else 0)
        candidate = Radices((radix, *rest.steps), operators)
        if candidate.rows * 8 <= rows * 9 + 64 and (best is None or operators < best.operators):
            best = candidate
    assert best is not None
    return best


@dataclass(frozen=True)
class Decay:
    """A constant decay.

    Args:
        numbers: The factors of one step as float64, at most 1 in magnitude, broadcastable to the shape of the state.
        dtype: The type of the states.
        form: "Add" or "Sub" if the loop computes ``s + 0 * s`` or ``s - 0 * s`` before the decay. Both turn infinities into NaN;
            "Sub" also turns -0 into 0.
    """

    numbers: np.ndarray
    dtype: np.dtype
    form: str = ""

    def power(self, exponent: int) -> list[np.ndarray]:
        """Return factors whose product is the decay over ``exponent`` steps."""
        return self._factors(np.array(exponent))

    def powers(self, exponents: Sequence[int]) -> list[np.ndarray]:
        """Return factors whose product P has a new axis 0: P[i] is the decay over ``exponents[i]`` steps."""
        return self._factors(np.array(exponents).reshape(-1, *[1] * self.numbers.ndim))

    def _factors(self, exponents: np.ndarray) -> list[np.ndarray]:
        min_exponent = _MIN_EXPONENTS[self.dtype.itemsize]
        magnitude = np.where(self.numbers == 0, 1, np.abs(self.numbers))
        bits = np.maximum(np.log2(magnitude) * exponents, _MOST_FACTORS * min_exponent)
        count = max(1, int(np.ceil((bits / min_exponent).max(initial=0))))
        sign = np.where((self.numbers < 0) & (exponents % 2 == 1), -1.0, 1.0) * (self.numbers != 0)
        is_normal = bits >= min_exponent
        first = np.where(is_normal, magnitude ** np.where(is_normal, exponents, 1), np.exp2(bits / count)) * sign
        rest = np.where(is_normal, 1.0, np.exp2(bits / count))
        return [np.array(factor, self.dtype) for factor in (first, *[rest] * (count - 1))]


class DecayBlocks:
    """Emits the nodes that compute a state with a constant decay in all steps.

    The rank of the state must be known. Tensors [rows, numbers] with few numbers are transposed: short last axes broadcast slowly.
    """

    def __init__(self, build: Builder, state: State, decay: Decay) -> None:
        assert state.inner.shape is not None
        self._build, self._initial, self._known = build, state.initial, static_dims(state.inner)
        self._dims = [dim if isinstance(dim, int) else -1 for dim in shape_dims(state.inner.shape)]
        self._is_narrow = self._known is not None and math.prod(self._known) < _NARROW
        is_one = bool((decay.numbers == decay.numbers.flat[0]).all())
        self._decay = replace(decay, numbers=decay.numbers.flat[0].reshape(())) if is_one else decay

    def states(self, drives: ir.Value, radices: Sequence[int], steps: int) -> ir.Value:
        """Return ``prod(radices)`` rows: padding, then the initial state, then the states after all steps."""
        build, count, is_flat = self._build, math.prod(radices), len(self._dims) == 1
        missing = count - steps - 1
        rows = [reshape(build, self._initial, [1, -1]), drives if is_flat else reshape(build, drives, [steps, -1])]
        states = self._states(concat(build, [self._neutral_rows(missing), *rows] if missing else rows, 0), radices, 1)
        if is_flat:
            return states
        return reshape_with_axes_of(build, states, [count], self._initial, self._dims if self._dims.count(-1) <= 1 else None)

    def _states(self, drives: ir.Value, radices: Sequence[int], steps: int) -> ir.Value:
        """Return the states after each row of ``drives``, from state 0. A row is the drive of ``steps`` steps."""
        build, (radix, *rest) = self._build, radices
        blocks = math.prod(rest)
        is_transposed = self._is_narrow and blocks > 1
        if is_transposed:  # rows[i] has row i of all blocks: [numbers, blocks] here, [blocks, numbers] below
            transposed = transpose(build, reshape(build, drives, [blocks, radix, -1]), [1, 2, 0])
            rows = split(build, reshape(build, transposed, [-1, blocks]), 0, None, radix)
        else:
            rows = split(build, reshape(build, drives, [blocks, -1]), 1, None, radix)
        decay = [self._power_constant(factor, is_transposed) for factor in self._decay.power(steps)]
        states = list(itertools.accumulate(rows, lambda before, row: build.op("Add", self._multiply_by(before, decay), row)))
        alone = concat(build, states, 0 if is_transposed else 1)
        if blocks == 1:
            return reshape(build, alone, [radix, -1])
        last = transpose(build, states[-1], [1, 0]) if is_transposed else states[-1]
        ends = slice_axis(build, self._states(last, rest, steps * radix), 0, 0, -1)
        factors = self._decay.powers([steps * (index + 1) for index in range(radix)])
        before = concat(build, [self._neutral_rows(1), ends], 0)
        before = unsqueeze(build, transpose(build, before, [1, 0]), [0]) if is_transposed else unsqueeze(build, before, [1])
        added = self._multiply_by(before, [self._powers_constant(factor, is_transposed) for factor in factors])
        result = build.op("Add", reshape(build, alone, [radix, -1, blocks] if is_transposed else [blocks, radix, -1]), added)
        return reshape(build, transpose(build, result, [2, 0, 1]) if is_transposed else result, [blocks * radix, -1])

    def _multiply_by(self, state: ir.Value, factors: Sequence[ir.Value]) -> ir.Value:
        if self._decay.form:
            zero = self._build.const(np.array(0, self._decay.dtype))
            state = self._build.op(self._decay.form, state, self._build.op("Mul", state, zero))
        for factor in factors:
            state = self._build.op("Mul", state, factor)
        return state

    def _power_constant(self, power: np.ndarray, is_transposed: bool) -> ir.Value:
        """Return ``power`` as a constant for tensors [rows, numbers], or [numbers, rows] if ``is_transposed``."""
        if is_transposed and power.ndim:
            return self._build.const(np.broadcast_to(power, self._known or ()).reshape(-1, 1))
        return self._powers_constant(power[None], False) if power.ndim else self._build.const(power)

    def _powers_constant(self, powers: np.ndarray, is_transposed: bool) -> ir.Value:
        """Return ``powers``, one factor from ``Decay.powers``, as a constant. Axis 0 is the row in a block."""
        # the constant multiplies tensors [blocks, rows, numbers], or [rows, numbers, blocks] if is_transposed
        count = len(powers)
        wide = powers.reshape(count, *[1] * (len(self._dims) + 1 - powers.ndim), *powers.shape[1:])
        if powers.ndim > 1 and self._known is None:
            return self._repeat_rows(wide, count)
        flat = powers[:, None] if powers.ndim == 1 else np.broadcast_to(wide, (count, *(self._known or ()))).reshape(count, -1)
        return self._build.const(flat[..., None] if is_transposed else flat)

    def _neutral_rows(self, rows: int) -> ir.Value:
        """Return ``rows`` rows filled with -0, the neutral element of Add: 0 + -0 is 0, and -0 + -0 is -0."""
        zero = np.array(-0.0, self._decay.dtype)
        if self._known is not None:
            return self._build.const(np.full((rows, math.prod(self._known)), zero))
        return self._repeat_rows(zero, rows)

    def _repeat_rows(self, numbers: np.ndarray, rows: int) -> ir.Value:
        build, repeated = self._build, self._build.const(numbers)
        sizes = concat(build, [build.const([rows]), build.op("Shape", self._initial)], 0)
        return reshape(build, build.op("Expand", repeated, sizes), [rows, -1])
