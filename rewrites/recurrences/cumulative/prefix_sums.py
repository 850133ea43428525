"""The sums and products of a state that accumulates, of all steps at once, by CumSum and CumProd.

onnxruntime's kernels go row after row, as the loop does: with the initial value as the row before the first, each result is the
loop's to the last bit, through NaN, infinities and overflows; where the row before the first is not wanted, and there is a first,
that takes the initial value up, which from opset 16 on one ScatterND does. Products from ones need no such row. Nor do sums from
zeros, but that a sum of nothing but -0 would be -0 where it is 0 in the loop: 0 is added to the first row, or to all sums.
"""

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.values import const_array
from rewrites.ops.versions import slice_axis, unsqueeze
from rewrites.recurrences.cumulative.accumulation import Accumulation
from rewrites.recurrences.cumulative.rows import Ends, is_filled, rows_of, shaped
from rewrites.recurrences.given_states import Wanted

__all__ = ["place_sums", "starts_neutral"]

_LISTED = 1 << 13


def starts_neutral(found: Accumulation) -> bool:
    """Whether the initial value changes nothing: zeros for a sum, ones for a product."""
    return is_filled(found.state.initial, 1 if found.op_type == "Mul" else 0)


def place_sums(stacks: Stacks, found: Accumulation, need: Wanted) -> ir.Value | None:
    """Put the values of the state that are needed of all steps into ``stacks``; return its last value where that is needed."""
    b, initial, ends = stacks.build, found.state.initial, Ends(stacks.build, stacks.backwards)
    counted = _counted(stacks, found)
    if counted is not None:
        if need.before:
            stacks.place(found.state.inner, b.const(counted[1:] if stacks.backwards else counted[:-1]))
        if need.after:
            stacks.place(need.made[0], b.const(counted[:-1] if stacks.backwards else counted[1:]))
        return b.op("Identity", b.const(np.asarray(counted[0 if stacks.backwards else -1]))) if need.final else None
    rows = rows_of(stacks, found)
    steps = stacks.loop.steps
    has_first = not need.before and isinstance(steps, int) and steps > 0
    is_begun = has_first and need.after and _may_be_minus_zero(found) and b.opset >= since.SCATTER_REDUCTION
    if starts_neutral(found) and not is_begun and not (need.before and (need.after or need.final)):
        return _from_neutral(stacks, rows, found, need)
    if has_first:
        assert isinstance(steps, int)
        whole = shaped(_run(stacks, _begun(stacks, rows, found, steps), found), rows, initial)
        if need.after:
            stacks.place(need.made[0], whole)
        return ends.last(whole) if need.final else None
    whole = _run(stacks, ends.led(unsqueeze(b, initial, [0]), rows), found)
    if need.before:
        stacks.place(found.state.inner, shaped(ends.but_last(whole), rows, initial))
    if need.after:
        stacks.place(need.made[0], shaped(ends.but_first(whole), rows, initial))
    return ends.last(whole) if need.final else None


def _begun(stacks: Stacks, rows: ir.Value, found: Accumulation, steps: int) -> ir.Value:
    """Return ``rows`` with what the first step makes of the initial value in the place of the first: one copy of the stack."""
    b, place, initial = stacks.build, steps - 1 if stacks.backwards else 0, found.state.initial
    if b.opset >= since.SCATTER_REDUCTION:
        return b.op("ScatterND", rows, b.const([place]), initial, reduction="mul" if found.op_type == "Mul" else "add")
    first = slice_axis(b, rows, 0, place, place + 1)
    begun = b.op("Mul" if found.op_type == "Mul" else "Add", initial, first)
    return b.op("ScatterND", rows, b.const(np.array([[place]], np.int64)), begun)


def _counted(stacks: Stacks, found: Accumulation) -> np.ndarray | None:
    """Return the initial value, and that after each step, where one number counts by another; None elsewhere."""
    initial, number, steps = const_array(found.state.initial), const_array(found.operand), stacks.loop.steps
    if (
        found.mask is not None
        or initial is None
        or number is None
        or initial.size != 1
        or number.size != 1
        or not isinstance(steps, int)
        or steps > _LISTED
    ):
        return None
    rows = np.full((steps + 1, *initial.shape), number.reshape(()), initial.dtype)
    rows[0] = initial
    with np.errstate(all="ignore"):
        numbers = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[found.op_type].accumulate(rows, dtype=initial.dtype)
    return np.ascontiguousarray(numbers[::-1]) if stacks.backwards else np.asarray(numbers)


def _from_neutral(stacks: Stacks, rows: ir.Value, found: Accumulation, need: Wanted) -> ir.Value | None:
    b, initial, ends = stacks.build, found.state.initial, Ends(stacks.build, stacks.backwards)
    if need.before:
        stacks.place(found.state.inner, shaped(_mended(b, _run(stacks, rows, found, exclusive=1), found), rows, initial))
        return None
    if need.after:
        whole = _mended(b, _run(stacks, rows, found), found)
        stacks.place(need.made[0], shaped(whole, rows, initial))
        return ends.last(whole) if need.final else None
    return _mended(b, ends.last(_run(stacks, rows, found)), found)


def _run(stacks: Stacks, rows: ir.Value, found: Accumulation, exclusive: int | None = None) -> ir.Value:
    kind, reverse = "CumProd" if found.op_type == "Mul" else "CumSum", 1 if stacks.backwards else None
    return stacks.build.op(kind, rows, stacks.build.const(np.array(0, np.int64)), exclusive=exclusive, reverse=reverse)


def _may_be_minus_zero(found: Accumulation) -> bool:
    kind = found.state.initial.dtype
    return found.op_type != "Mul" and kind is not None and kind.is_floating_point()


def _mended(b: Builder, whole: ir.Value, found: Accumulation) -> ir.Value:
    """Return sums of which none is -0."""
    if whole.dtype is None or not _may_be_minus_zero(found):
        return whole
    return b.op("Add", whole, b.const(np.array(0, whole.dtype.numpy())))
