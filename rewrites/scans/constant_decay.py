"""The states of ``s' = decay * s + drive`` for a constant decay and all rows of a stack of drives, block by block, without a loop.

The rows are cut into blocks of r. The first row of every block is computed at once, then the second of every block from the first,
and so on, as if each block began with nothing. The last rows are the drives of a recurrence of fewer rows, whose decay is that of r
steps; its states are added to all rows of the block behind. Nothing is ever multiplied by what comes after it, so that a state that
is not finite reaches later rows only.

A power of the decay that underflows to 0 would make NaN of an infinite state, which stays infinite in the loop. So a power is a
product of factors none of which is 0, unless the decay is 0: what is finite goes to 0 under them as it does in the loop.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.builder import Builder
from rewrites.graph.values import shape_dims, static_dims
from rewrites.loops import State
from rewrites.ops.versions import concat, reshape, slice_axis, split, transpose, unsqueeze
from rewrites.scans.blocks import Radices

__all__ = ["Decay", "DecayBlocks", "choose_levels"]

_NARROW = 8
_MOST = 16
_LEAST_EXPONENTS = {4: -125, 8: -1020}
"""Of the normal numbers of so many bytes, as powers of 2."""
_MOST_FACTORS = 3
"""The product of so many of the least normal numbers brings the largest number to 0."""


@lru_cache(maxsize=4096)
def choose_levels(rows: int) -> Radices:
    """Return the radices with the fewest operators for ``rows`` rows or a few more."""
    if rows <= 1:
        return Radices((), 0)
    best: Radices | None = None
    for radix in range(2, min(rows, _MOST) + 1):
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
    """``numbers``: what a state is multiplied by in one step, in float64, none larger than 1; they broadcast to its shape.

    ``dtype``: of the states. ``form``: "Add" or "Sub" where a state has 0 times itself added or taken off before it decays, so that
    what is infinite is NaN from there on, and with "Sub" no zero is negative.
    """

    numbers: np.ndarray
    dtype: np.dtype
    form: str = ""

    def power(self, exponent: int) -> list[np.ndarray]:
        """Return the factors of the decay over ``exponent`` steps."""
        return self._factors(np.array(exponent))

    def powers(self, exponents: Sequence[int]) -> list[np.ndarray]:
        """Return the factors of the decays over ``exponents`` steps each, along a new axis 0."""
        return self._factors(np.array(exponents).reshape(-1, *[1] * self.numbers.ndim))

    def _factors(self, exponents: np.ndarray) -> list[np.ndarray]:
        least = _LEAST_EXPONENTS[self.dtype.itemsize]
        magnitude = np.where(self.numbers == 0, 1, np.abs(self.numbers))
        bits = np.maximum(np.log2(magnitude) * exponents, _MOST_FACTORS * least)
        count = max(1, int(np.ceil((bits / least).max(initial=0))))
        sign = np.where((self.numbers < 0) & (exponents % 2 == 1), -1.0, 1.0) * (self.numbers != 0)
        plain = bits >= least
        first = np.where(plain, magnitude ** np.where(plain, exponents, 1), np.exp2(bits / count)) * sign
        rest = np.where(plain, 1.0, np.exp2(bits / count))
        return [np.array(factor, self.dtype) for factor in (first, *[rest] * (count - 1))]


class DecayBlocks:
    """Writes the states of ``state``, whose rank is known, to ``build``.

    Work is on [rows, numbers], or on [numbers, rows] where states have few numbers: onnxruntime broadcasts slowly along short axes.
    """

    def __init__(self, build: Builder, state: State, decay: Decay) -> None:
        assert state.inner.shape is not None
        self._build, self._initial = build, state.initial
        self._dims = [dim if isinstance(dim, int) else -1 for dim in shape_dims(state.inner.shape)]
        self._known = static_dims(state.inner)
        self._is_narrow = self._known is not None and math.prod(self._known) < _NARROW
        is_one = bool((decay.numbers == decay.numbers.flat[0]).all())
        self._decay = replace(decay, numbers=decay.numbers.flat[0].reshape(())) if is_one else decay

    def states(self, drives: ir.Value, radices: Sequence[int], steps: int) -> ir.Value:
        """Return the initial state and those after each of ``steps`` drives, behind as many zeros as ``radices`` leave room for."""
        build, count, is_flat = self._build, math.prod(radices), len(self._dims) == 1
        missing = count - steps - 1
        rows = [reshape(build, self._initial, [1, -1]), drives if is_flat else reshape(build, drives, [steps, -1])]
        states = self._states(concat(build, [self._nothing(missing), *rows] if missing else rows, 0), radices, 1)
        if is_flat:
            return states
        if self._dims.count(-1) <= 1:
            return reshape(build, states, [count, *self._dims])
        return build.op("Reshape", states, self._sizes(count), allowzero=1 if build.opset >= since.ALLOWZERO else None)

    def _states(self, drives: ir.Value, radices: Sequence[int], steps: int) -> ir.Value:
        """Return the states if each row is ``steps`` steps and nothing is before the first."""
        build, (radix, *rest) = self._build, radices
        blocks = math.prod(rest)
        is_turned = self._is_narrow and blocks > 1
        axis, rows = 0 if is_turned else 1, self._rows(drives, blocks, radix, is_turned)
        decay = [self._factor(factor, is_turned) for factor in self._decay.power(steps)]
        states = list(itertools.accumulate(rows, lambda before, row: build.op("Add", self._decayed(before, decay), row)))
        alone = concat(build, states, axis)
        if blocks == 1:
            return reshape(build, alone, [radix, -1])
        last = transpose(build, states[-1], [1, 0]) if is_turned else states[-1]
        ends = slice_axis(build, self._states(last, rest, steps * radix), 0, 0, -1)
        factors = self._decay.powers([steps * (index + 1) for index in range(radix)])
        before = concat(build, [self._nothing(1), ends], 0)
        before = unsqueeze(build, transpose(build, before, [1, 0]), [0]) if is_turned else unsqueeze(build, before, [1])
        left = self._decayed(before, [self._factors(factor, is_turned) for factor in factors])
        whole = build.op("Add", reshape(build, alone, [radix, -1, blocks] if is_turned else [blocks, radix, -1]), left)
        return reshape(build, transpose(build, whole, [2, 0, 1]) if is_turned else whole, [blocks * radix, -1])

    def _rows(self, drives: ir.Value, blocks: int, radix: int, is_turned: bool) -> tuple[ir.Value, ...]:
        """Return the first, second, ... rows of all blocks, [blocks, numbers], or [numbers, blocks] where ``is_turned``."""
        build = self._build
        if not is_turned:
            return split(build, reshape(build, drives, [blocks, -1]), 1, None, radix)
        turned = transpose(build, reshape(build, drives, [blocks, radix, -1]), [1, 2, 0])
        return split(build, reshape(build, turned, [-1, blocks]), 0, None, radix)

    def _decayed(self, state: ir.Value, factors: Sequence[ir.Value]) -> ir.Value:
        if self._decay.form:
            zero = self._build.const(np.array(0, self._decay.dtype))
            state = self._build.op(self._decay.form, state, self._build.op("Mul", state, zero))
        for factor in factors:
            state = self._build.op("Mul", state, factor)
        return state

    def _factor(self, power: np.ndarray, is_turned: bool) -> ir.Value:
        """Return what states are multiplied by."""
        if is_turned and power.ndim:
            return self._build.const(np.broadcast_to(power, self._known or ()).reshape(-1, 1))
        return self._factors(power[None], False) if power.ndim else self._build.const(power)

    def _factors(self, powers: np.ndarray, is_turned: bool) -> ir.Value:
        """Return what the states of a block are multiplied by: ``powers`` has one more axis in front."""
        build, count = self._build, len(powers)
        wide = powers.reshape(count, *[1] * (len(self._dims) + 1 - powers.ndim), *powers.shape[1:])
        if powers.ndim == 1:
            flat = powers[:, None]
        elif self._known is not None:
            flat = np.broadcast_to(wide, (count, *self._known)).reshape(count, -1)
        else:
            return reshape(build, build.op("Expand", build.const(wide), self._sizes(count)), [count, -1])
        return build.const(flat[..., None] if is_turned else flat)

    def _nothing(self, rows: int) -> ir.Value:
        """Return rows of -0, which changes no other zero in a sum."""
        build, zero = self._build, np.array(-0.0, self._decay.dtype)
        if self._known is not None:
            return build.const(np.full((rows, math.prod(self._known)), zero))
        return reshape(build, build.op("Expand", build.const(zero), self._sizes(rows)), [rows, -1])

    def _sizes(self, rows: int) -> ir.Value:
        return concat(self._build, [self._build.const([rows]), self._build.op("Shape", self._initial)], 0)
