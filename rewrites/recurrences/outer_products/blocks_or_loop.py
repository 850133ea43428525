"""An If between blocks of steps of a matrix that takes up outer products, and a loop over it alone, in the place of the matrix."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import nodes_behind
from rewrites.fission.separate import separate
from rewrites.graph.branches import write_if
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import with_axes, without_names
from rewrites.graph.values import const_array, static_dims
from rewrites.loops import ScanOutput, ScanView
from rewrites.recurrences.given_states import Wanted, give
from rewrites.recurrences.or_loop import are_plain, keep_loop
from rewrites.recurrences.outer_products.aligned import multiplied
from rewrites.recurrences.outer_products.block_plan import Plan
from rewrites.recurrences.outer_products.blocked import Blocked, Given
from rewrites.recurrences.outer_products.decays import exponent, is_never_negative
from rewrites.recurrences.outer_products.head_rows import HeadRows
from rewrites.recurrences.outer_products.terms import Product
from rewrites.scan_form.lengths import most_steps

__all__ = ["BlocksOrLoop"]

_LARGEST = {4: 1e7, 8: 1e100}
"""A product of three such numbers is a number, and one that is too small to be one, of decays, is nothing beside it."""


@dataclass(frozen=True)
class BlocksOrLoop:
    """What ``rows``, which has stacks of all factors, is put in place of: its state in ``loop``.

    ``constant``: what it is multiplied by in each step, by head, where that is known. ``has_last``: whether its last value is
    of use.
    """

    rows: HeadRows
    loop: ScanView
    ctx: Context
    constant: np.ndarray | None
    has_last: bool

    def put(self, plan: Plan, least: int) -> list[ir.Node]:
        """Change the loop; blocks run from ``least`` steps on. Return the loops that there are then."""
        rows, loop, ctx = self.rows, self.loop, self.ctx
        found, stacks, state = rows.found, rows.stacks, rows.found.state
        instead, kept = ctx.builder(), ctx.builder()
        given, checked = self._given(plan, instead)
        steps = loop.steps if isinstance(loop.steps, int) else most_steps(stacks.build, loop)
        read, last, loops = Blocked(instead, steps, plan.length, plan.is_flat, rows.dtype).all_steps(given)
        results, outputs = list[ir.Value](), list[ScanOutput]()
        if found.read is not None and read is not None:
            results.append(rows.unpacked(instead, read, found.read[1]))
            outputs.append(ScanOutput(found.read[0], None, 0, stacks.backwards))
        if self.has_last:
            results.append(rows.unpacked_state(instead, last))
        makers = nodes_behind(loop.body, [state.next, *(output.inner for output in outputs)])
        scan = separate(loop, makers, [state], {}, outputs, ctx, name=lambda value: ctx.names.fresh(value.name or "value"))
        for output, stack in zip(outputs, scan.outputs[1:], strict=True):
            stack.shape = with_axes(without_names(output.inner.shape), 0, loop.steps if isinstance(loop.steps, int) else None)
        kept.nodes.append(scan)
        otherwise = [*scan.outputs[1:], *([scan.outputs[0]] if self.has_last else [])]
        condition = self._condition(checked, least)
        made = list(write_if(stacks.build, condition, (instead, results), (kept, otherwise), loop.node.name))
        keep_loop(scan, ctx)
        final = made.pop() if self.has_last else None
        for output, stack in zip(outputs, made, strict=True):
            stacks.place(output.inner, stack)
        need = Wanted(state, tuple(output.inner for output in outputs), before=False, after=bool(outputs), final=self.has_last)
        return [*give(loop, need, stacks, final, ctx), *loops, scan]

    def _given(self, plan: Plan, instead: Builder) -> tuple[Given, "_Checked"]:
        rows, found = self.rows, self.rows.found
        steps, constant = self.loop.steps, self.constant
        if constant is not None and self.has_last and not (isinstance(steps, int) and steps % plan.length == 0):
            constant = None  # steps that are put behind must not decay
        keys, values = self._whole(found.keys, rows.key), self._whole(found.taken, found.values)
        queries = None if found.query is None else self._whole(found.query, rows.key)
        by_key = found.key is not None and found.key in found.decay.named
        along = rows.key if by_key else ()
        decays = self._whole(found.decay, along) if found.decay.factors and constant is None else None
        of_decays = None
        if decays is not None and self.constant is None and not by_key and is_never_negative(found.decay, rows.stacks):
            of_decays = exponent(found.decay, rows.stacks)
        given = Given(
            rows.rows(instead, keys, found.keys, rows.key, full=by_key),
            rows.rows(instead, values, found.taken, found.values),
            None if found.query is None or queries is None else rows.rows(instead, queries, found.query, rows.key),
            None if decays is None else self._rows_of_decays(instead, decays, of_decays, along),
            of_decays is not None,
            by_key,
            constant,
            rows.state(instead),
        )
        plain = [keys, values, *([queries] if queries is not None else [])]
        return given, _Checked(plain, decays if self.constant is None else None)

    def _whole(self, product: Product, along: tuple[int, ...]) -> ir.Value:
        return multiplied(self.rows.stacks, product, (*self.rows.found.heads, *along), self.rows.dtype, alone=False)

    def _rows_of_decays(self, instead: Builder, decays: ir.Value, of_decays: Product | None, along: tuple[int, ...]) -> ir.Value:
        if of_decays is None:
            return self.rows.rows(instead, decays, self.rows.found.decay, along)
        return self.rows.rows(instead, self._whole(of_decays, ()), of_decays, ())

    def _condition(self, checked: "_Checked", least: int) -> ir.Value:
        """Return whether blocks come to what the loop does, and there are as many steps."""
        build, loop, initial = self.rows.stacks.build, self.loop, self.rows.found.state.initial
        known = isinstance(loop.steps, int)
        if known and static_dims(initial) is not None:
            return self._is_plain(build, checked)
        asked, none = self.ctx.builder(), self.ctx.builder()
        is_fit = build.op("Less", build.const([0]), build.op("Size", initial))
        if not known:
            is_fit = build.op("And", is_fit, build.op("Less", build.const([least - 1]), most_steps(build, loop)))
        answer = self._is_plain(asked, checked)
        no = none.op("Identity", none.const(np.array(False)))
        return write_if(build, is_fit, (asked, [answer]), (none, [no]), loop.node.name)[0]

    def _is_plain(self, build: Builder, checked: "_Checked") -> ir.Value:
        dtype, initial = self.rows.dtype, self.rows.found.state.initial
        array, largest = const_array(initial), _LARGEST[self.rows.dtype.itemsize]
        values = [*checked.plain, *([checked.decays] if checked.decays is not None else [])]
        answer = are_plain(build, values, largest, dtype, are_no_minus_zeros=False)
        has_signs = self.has_last and not self.ctx.options.fast_math
        if array is None or not _is_small(array, largest):
            own = are_plain(build, [initial], largest, dtype, are_no_minus_zeros=has_signs)
            answer = build.op("And", answer, own)
        if checked.decays is not None:
            above = build.const(np.asarray(np.nextafter(np.array(1, dtype), np.array(2, dtype)), dtype))
            size = build.op("ReduceMax", build.op("Abs", checked.decays), keepdims=0)
            answer = build.op("And", answer, build.op("Less", size, above))
            if has_signs:
                lowest = build.op("ReduceMin", checked.decays, keepdims=0)
                answer = build.op("And", answer, build.op("Less", build.const(np.array(0, dtype)), lowest))
        return answer


@dataclass(frozen=True)
class _Checked:
    """What must be plain numbers; and ``decays``, at most 1, where these are known at run time alone."""

    plain: Sequence[ir.Value]
    decays: ir.Value | None


def _is_small(array: np.ndarray, largest: float) -> bool:
    """Whether constant numbers are plain, and none is -0."""
    squares = float(np.square(array.astype(np.float64)).sum())
    return squares < largest * largest and not bool(np.signbit(array[array == 0]).any())
