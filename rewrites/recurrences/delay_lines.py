"""Read the states of a delay line, which holds the last rows of an input, from the input.

    Scan(s0, xs) body(s, x) => (n = Concat(Slice(s, 1:), x), y = f(n))
    ->    Scan(ns) body(n) => f(n)    with ns = Gather([s0, *xs], [[1, 2, ...], [2, 3, ...], ...])

Examples are the inputs of a causal convolution and of a moving window. The newest rows may also come first. Elements are only
moved, so the results are equal bit for bit.

Conditions:

* The next state joins rows that depend on no state with all rows of the state but the oldest, along any axis.
* The sizes of the state and of the new rows are known.
* The states of all steps stay within the memory budget, and a state has at most ``_WIDEST`` bytes.
* The loop is not compiled to a plan.
* The state has no strings, because onnxruntime's Gather copies only the first string of each row.

Works around ORT-GATHER-STRINGS.
"""

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.dependence import varying_values
from rewrites.base import since
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.graph.values import const_array, static_dims, through_identity
from rewrites.loops import Loop, ScanView, State
from rewrites.ops.element_moves import movement
from rewrites.ops.versions import (
    axis_of,
    concat,
    count_up,
    gather,
    move_axis_first,
    move_first_axis,
    reshape,
    reversed_if,
    slice_axis,
)
from rewrites.recurrences.closed_form import first_patch, over_budget, plain_scan, plan_is_faster
from rewrites.recurrences.results import put_stacks, replace_state, use_of
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_WIDEST = 1 << 14
_MOST_ELEMENTS = 1 << 16
_END = 2**63 - 1


@dataclass(frozen=True)
class _DelayLine:
    """A state to which each step adds ``rows`` along ``axis``.

    Args:
        newest_first: True if the new rows become the first rows of the state.
        join: The Concat that computes the next state.
        kept: The node that drops the oldest rows of the state.
    """

    state: State
    join: ir.Node
    kept: ir.Node
    rows: ir.Value
    axis: int
    newest_first: bool


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return the patch for the first state of ``loop`` that is a delay line."""
    scan = plain_scan(loop, ctx, since.RANGE, needs_fallback=False)
    if scan is None:
        return NOTHING_HERE
    varying = varying_values(scan.body, [state.inner for state in scan.states])
    lines = (line for state in scan.states if (line := _line_of(state, varying, ctx)) is not None)
    return first_patch(_patch(scan, line, ctx) for line in lines)


def _line_of(state: State, varying: set[ir.Value], ctx: Context) -> _DelayLine | None:
    value, dims = through_identity(state.next), static_dims(state.inner)
    join = None if value is None else value.producer()
    if (
        join is None
        or state.inner.dtype == ir.DataType.STRING
        or join.op_type != "Concat"
        or join.domain != ""
        or len(join.inputs) != 2
        or not dims
    ):
        return None
    axis = axis_of(join, 0, len(dims))
    for newest_first in (False, True):
        rest, rows = map(through_identity, reversed(join.inputs) if newest_first else join.inputs)
        shape = None if rows is None or rows in varying else static_dims(rows)
        if rest is None or rows is None or shape is None or len(shape) != len(dims) or not 0 < shape[axis] < dims[axis]:
            continue
        kept = range(dims[axis] - shape[axis]) if newest_first else range(shape[axis], dims[axis])
        node = rest.producer()
        if node is not None and _reads_rows(node, rest, state, axis, kept, ctx):
            return _DelayLine(state, join, node, rows, axis, newest_first)
    return None


def _reads_rows(node: ir.Node, result: ir.Value, state: State, axis: int, rows: range, ctx: Context) -> bool:
    """Return True if ``result``, an output of ``node``, consists of ``rows`` of ``state`` along ``axis``."""
    dims = static_dims(state.inner) or ()
    if not node.inputs or through_identity(node.inputs[0]) is not state.inner or not 0 < math.prod(dims) <= _MOST_ELEMENTS:
        return False

    def elements_of(index: int) -> np.ndarray | None:
        return const_array(node.inputs[index]) if index < len(node.inputs) else None

    moved = movement(node, ctx.opset, dims, elements_of)
    elements = np.arange(math.prod(dims)).reshape(dims)
    if moved is None or node.op_type == "Concat":
        return False
    return np.array_equal(moved.apply([elements])[list(node.outputs).index(result)], np.take(elements, rows, axis))


def _patch(loop: ScanView, line: _DelayLine, ctx: Context) -> Patch | NotApplicable:
    sizes, name = StepSizes.of(loop, ctx), f"'{line.state.inner.name}'"
    width = sizes.step_bytes(line.state.inner)
    if width > _WIDEST:
        return NotApplicable(
            "CUMULATIVE-COST", f"{name} takes {width} bytes a step; reading it from the input is faster up to {_WIDEST}"
        )
    reason = over_budget(f"{name} takes", 2 * width * sizes.steps, ctx, "for all steps at once")
    reason = reason or plan_is_faster(loop, ctx, "CUMULATIVE-COST", "reading the rows of a delay line")
    if reason is not None:
        return reason
    stacks, use = Stacks(loop, ctx.builder()), use_of(loop, line.state, [line.join], [line.kept])
    refusal = put_stacks([line.rows], stacks, sizes)
    if refusal is not None:
        stacks.build.discard()
        return refusal
    whole = _emit_whole(line, stacks)
    if use.after:
        stacks.set(line.join.outputs[0], _emit_windows(line, whole, stacks, after=True))
    if use.before:
        stacks.set(line.state.inner, _emit_windows(line, whole, stacks, after=False))
    size = (static_dims(line.state.inner) or ())[line.axis]
    final = None
    if use.final:
        final = slice_axis(stacks.build, whole, line.axis, *((0, size) if line.newest_first else (-size, _END)))
    return Patch(f"read the states of the delay line {name} from its input", lambda: replace_state(stacks, use, final, ctx))


def _emit_whole(line: _DelayLine, stacks: Stacks) -> ir.Value:
    """Emit the rows of all steps and of the initial state, joined along the axis of the delay line."""
    build, axis, dims = stacks.build, line.axis, static_dims(line.rows) or ()
    rows = reversed_if(build, stacks.stack_of(line.rows), stacks.backwards != line.newest_first)
    if axis:
        rows = move_first_axis(build, rows, axis, len(dims) + 1)
    rows = reshape(build, rows, [*dims[:axis], -1, *dims[axis + 1 :]])
    return concat(build, [rows, line.state.initial] if line.newest_first else [line.state.initial, rows], axis)


def _emit_windows(line: _DelayLine, whole: ir.Value, stacks: Stacks, *, after: bool) -> ir.Value:
    """Emit the states of all steps, after each step or else before it, in the order of ``stacks``."""
    build, dims, axis = stacks.build, static_dims(line.state.inner) or (), line.axis
    count = (static_dims(line.rows) or ())[axis]
    numbers = count_up(build, stacks.steps)
    if line.newest_first != stacks.backwards:
        numbers = build.op("Sub", build.op("Sub", stacks.steps, build.const([1])), numbers)
    first = 0 if after == line.newest_first else count
    starts = reshape(build, numbers, [-1, 1])
    if count > 1:
        starts = build.op("Mul", starts, build.const([count]))
    windows = gather(build, whole, build.op("Add", starts, build.const(np.arange(first, first + dims[axis]))), axis)
    return move_axis_first(build, windows, axis, len(dims) + 1) if axis else windows


RULE = Rule("delay-lines", "recurrence", "loop", check, recognises=True, computes="delay line of the last rows of an input")
