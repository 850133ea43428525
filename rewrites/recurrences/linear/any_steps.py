"""The outputs of a constant system for any number of steps, by blocks of a known number of them; see ``filtered.py``.

    X [steps, rows, m]    is cut into [blocks, rows, k * m], with zeros behind, and Y is cut off where the steps end
    Z                     the states before each block: blocks of blocks, and a Scan over those

The states after the last step are those that its block has by then: the responses for so many steps are looked up among those for
1, 2, ..., k steps.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.ops.versions import concat, reshape, slice_axis, split
from rewrites.recurrences.linear.carried import carried
from rewrites.recurrences.linear.filtered import Blocks, Matrices, Part, Responses

__all__ = ["AnySteps"]

_LENGTHS = (64, 16)
"""How many numbers a block has, and how many one of blocks has."""
_LEAST = 4
_END = 2**63 - 1


class AnySteps(Blocks):
    """Writes nodes to ``build``; there are ``rows`` rows, of one or more."""

    def __init__(self, build: Builder, rows: int, dtype: np.dtype, ctx: Context) -> None:
        super().__init__(build, rows, dtype)
        self._ctx = ctx

    def of_any_steps(
        self,
        system: Matrices,
        parts: Sequence[Part],
        initial: ir.Value,
        steps: ir.Value,
        widths: Sequence[int],
        is_final: bool,
        level: int = 0,
    ) -> tuple[list[ir.Value], ir.Value | None]:
        """Return what ``outputs`` does, for ``steps``, a tensor of one int64, which is one or more."""
        build, states = self._build, len(system.step)
        length = max(_LEAST, _LENGTHS[level] // max(states, *(width for _, width in parts), *widths))
        responses = Responses(system, length, [width for _, width in parts], widths)
        behind = build.op("Mod", build.op("Neg", steps), build.const([length]))
        whole = build.op("Add", steps, behind)
        pads = concat(build, [build.const([0, 0, 0]), behind, build.const([0, 0])], 0)
        cut = [self._cut(self._filled(value, pads), width, length, -1) for value, width in parts]
        left = self._plus(self._product(concat(build, cut, 2), responses.left(length)), responses.left_more(length))
        if level + 1 < len(_LENGTHS):
            nothing = np.zeros((states, states))
            many = Matrices(responses.powers[length], np.eye(states), nothing[0], np.eye(states), nothing, nothing[0])
            blocks = build.op("Div", whole, build.const([length]))
            (before,), _ = self.of_any_steps(many, [(left, states)], initial, blocks, [states], False, level + 1)
        else:
            before = self._one_by_one(left, initial, responses.powers[length])
        read = concat(build, [*cut, before], 2)
        final = self._at_the_end(read, responses, length, behind) if is_final else None
        if not widths:
            return [], final
        made = self._plus(self._product(read, responses.made()), responses.made_more())
        pieces = split(build, made, 2, [length * width for width in widths], len(widths)) if len(widths) > 1 else (made,)
        stacks = [self._joined(one, width, length, -1) for one, width in zip(pieces, widths, strict=True)]
        start, axis = build.const([0]), build.const([0])
        return [build.op("Slice", stack, start, steps, axis) for stack in stacks], final

    def _one_by_one(self, left: ir.Value, initial: ir.Value, power: np.ndarray) -> ir.Value:
        """Return the states before each block, of what each block leaves behind, [blocks, rows, n]."""
        build, count = self._build, len(power)
        weights = build.const(power.astype(self._dtype))

        def step(inside: Builder, state: ir.Value, row: ir.Value) -> ir.Value:
            return inside.op("Add", inside.op("Mul" if count == 1 else "MatMul", state, weights), row)

        return carried(build, self._ctx, reshape(build, initial, [self._rows, count]), [left], step)

    def _at_the_end(self, read: ir.Value, responses: Responses, length: int, behind: ir.Value) -> ir.Value:
        """Return the states [1, rows, n] after as many steps of the last block as are no padding."""
        build = self._build
        last = slice_axis(build, read, 0, -1, _END)
        counts = range(length, 0, -1)
        weights = np.stack([np.concatenate([responses.left(count), responses.powers[count]]) for count in counts])
        found = build.op("MatMul", last, build.op("Gather", self._number(weights), behind, axis=0))
        more = np.stack([responses.left_more(count) for count in counts])
        return build.op("Add", found, build.op("Gather", self._number(more), behind, axis=0)) if more.any() else found
