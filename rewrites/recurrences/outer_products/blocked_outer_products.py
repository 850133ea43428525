"""Compute a matrix state that accumulates outer products, by matrix products per block of steps.

    Scan(S0, ks, vs, qs) body(S, k, v, q) => (S2 = a S + k v, q S2)
    ->  If (finite, bounded) then Scan over blocks: (Q K^T * weights) V + (Q S) * weights, S = weight S + K^T (V * weights)
                             else the Scan as it was

Q, K and V stack the queries, keys and values of a block. A matrix state may consist of several independent matrices, the heads. The
If keeps the loop in these cases:

* An operand is infinite or NaN.
* A decay ``a`` is above 1 in magnitude.
* The squares of all keys, values and queries, or those of the initial matrix, add up to more than 1e14 (1e200 in double).
* The last matrix is read, and its zeros might have another sign, because a decay is 0 or less or an element of the initial matrix
  is -0.

Otherwise the results differ from the loop only because terms are added in another order.

Conditions:

* The state is float or double, and the step does not follow the delta rule (see ``matrix_state``).
* There is no decay, one decay for each head, or one decay for each key.
* All sizes of the state are known, except perhaps one size of the heads.
* In the body, only one product with a query reads the matrix. After the loop, other nodes may read the last matrix.
* The target runs Scan and If.
* By the cost estimate, blocks are at least a fifth faster than the loop.
* The loop is not compiled to a plan.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.dependence import nodes_computing
from rewrites.base import since
from rewrites.fission.separate import copy_to_new_loop
from rewrites.fission.stacks import Stacks
from rewrites.graph.branches import write_if
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import with_axes, without_names
from rewrites.graph.values import const_array, static_dims
from rewrites.loops import Loop, ScanOutput, ScanView
from rewrites.recurrences.closed_form import first_patch, plain_scan, plan_is_faster, slower
from rewrites.recurrences.fallback import all_finite_and_bounded, no_fallback, write_fallback
from rewrites.recurrences.outer_products.block_plan import BlockPlan, block_shape, fewest_steps, plan_of
from rewrites.recurrences.outer_products.exponents import exponent, is_never_negative
from rewrites.recurrences.outer_products.head_rows import HeadRows
from rewrites.recurrences.outer_products.matrix_blocks import MatrixBlocks
from rewrites.recurrences.outer_products.matrix_state import MatrixState, matrix_states
from rewrites.recurrences.results import put_stacks, read_stacks
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scan_form.step_counts import emit_step_count
from rewrites.scans.blocks import cut_steps

__all__ = ["RULE", "check"]


_TYPES = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
_LARGEST = {4: 1e7, 8: 1e100}
"""A product of three such numbers does not overflow, and a product of decays that underflows is negligible beside one."""


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return the patch for the first matrix state of ``loop`` that can be computed in blocks."""
    scan = plain_scan(loop, ctx, since.CUM_SUM)
    if scan is None:
        return NOTHING_HERE
    return first_patch(
        _unsupported(scan, matrix, ctx) or _in_blocks(scan, matrix, ctx) for matrix in matrix_states(scan, ctx.opset)
    )


def _unsupported(loop: ScanView, matrix: MatrixState, ctx: Context) -> NotApplicable | None:
    name = matrix.state.inner.name
    if matrix.delta_factor is not None:
        return NotApplicable("ATTENTION-BLOCKS", f"'{name}' has a delta rule, so what a step adds depends on the matrix")
    if matrix.state.inner.dtype not in _TYPES:
        return NotApplicable("ATTENTION-TYPE", f"'{name}' is neither float32 nor double")
    return matrix.unknown_sizes() or plan_is_faster(loop, ctx, "ATTENTION-COST", "blocks of steps") or no_fallback(ctx)


def _in_blocks(loop: ScanView, matrix: MatrixState, ctx: Context) -> Patch | NotApplicable:
    sizes, kind, name, has_last = StepSizes.of(loop, ctx), matrix.state.inner.dtype, matrix.state.inner.name, matrix.has_last
    assert kind is not None
    if matrix.read is None and not has_last:
        return NOTHING_HERE
    stacks = Stacks(loop, ctx.builder())
    refusal = put_stacks(matrix.factors, stacks, sizes)
    shape = block_shape(matrix, sizes)
    body = len(nodes_computing(loop.body, [matrix.state.next, *([matrix.read[0]] if matrix.read is not None else [])]))
    plan = plan_of(shape, sizes.options)
    least = fewest_steps(shape, plan, body, sizes.options)
    if refusal is None and plan.bytes > sizes.options.memory_budget:
        refusal = NotApplicable("MEMORY-BUDGET", f"'{name}' takes about {plan.bytes} bytes (limit {sizes.options.memory_budget})")
    if refusal is None and (least is None or (sizes.steps_known and shape.steps < least)):
        loop_ns = sizes.options.costs.loop_ns(shape.steps, body, shape.state_bytes)
        refusal = slower("ATTENTION-COST", f"{shape.steps} steps of '{name}'", loop_ns, plan.ns, "in blocks")
    rows = HeadRows(matrix, stacks, np.dtype(kind.numpy()))
    constant = rows.constant(matrix.decay) if refusal is None and matrix.decay.factors else None
    refusal = refusal or _growing(constant, matrix, is_signed=has_last and not sizes.options.fast_math)
    if refusal is not None or least is None:
        stacks.build.discard()
        return refusal or NOTHING_HERE
    what = (
        f"computed '{name}' in blocks of {plan.length} steps, by products of matrices; an If keeps the loop for infinities and NaN"
    )
    edit = partial(_BlocksOrLoop(rows, ctx, constant).put, plan, least)
    return Patch(what, edit, sizes.memory_note(plan.bytes, [matrix.state.inner]))


def _growing(constant: np.ndarray | None, matrix: MatrixState, *, is_signed: bool) -> NotApplicable | None:
    if constant is None or ((np.abs(constant) <= 1).all() and not (is_signed and (constant <= 0).any())):
        return None
    detail = f"'{matrix.state.inner.name}' has constant decays such as {constant.flat[0]:g}"
    return NotApplicable("ATTENTION-DECAY", f"{detail}, whose powers overflow or change the signs of zeros")


@dataclass(frozen=True)
class _BlocksOrLoop:
    """Writes an If that runs blocks of steps, or a loop that computes only the matrix (the fallback).

    Args:
        rows: Writes the keys, values and other factors of the matrix as rows. Their stacks must already exist.
        constant: The decay of each head if it is the same constant in all steps, else None.
    """

    rows: HeadRows
    ctx: Context
    constant: np.ndarray | None

    def put(self, plan: BlockPlan, least: int) -> list[ir.Node]:
        """Take the matrix out of the loop and compute it by the If.

        Return the loops that replace the old loop: the loop without the matrix, the loops over blocks, and the fallback.

        ``least``: the smallest number of steps for which blocks run.
        """
        rows, stacks, loop, ctx = self.rows, self.rows.stacks, self.rows.stacks.loop, self.ctx
        matrix, state, has_last = rows.matrix, rows.matrix.state, rows.matrix.has_last
        inside, kept, known = ctx.builder(), ctx.builder(), loop.steps if isinstance(loop.steps, int) else None
        blocks, bounded, decays = self._blocks_and_checks(plan, inside)
        read, last, loops = blocks.all_steps()
        results, outputs = list[ir.Value](), list[ScanOutput]()
        if matrix.read is not None and read is not None:
            results.append(rows.unpacked(inside, read, matrix.read[1]))
            outputs.append(ScanOutput(matrix.read[0], None, 0, stacks.backwards))
        if has_last:
            results.append(rows.unpacked_state(inside, last))
        makers = nodes_computing(loop.body, [state.next, *(output.inner for output in outputs)])
        scan = copy_to_new_loop(loop, makers, [state], {}, outputs, ctx, name=lambda value: ctx.names.fresh(value.name or "value"))
        for output, stack in zip(outputs, scan.outputs[1:], strict=True):
            stack.shape = with_axes(without_names(output.inner.shape), 0, known)
        kept.nodes.append(scan)
        otherwise = [*scan.outputs[1:], *([scan.outputs[0]] if has_last else [])]
        condition = self._condition(bounded, decays, least)
        values = list(write_fallback(stacks.build, condition, (inside, results), (kept, otherwise), scan, loop.node.name, ctx))
        finals = [(state.final, values.pop())] if has_last else []
        for output, stack in zip(outputs, values, strict=True):
            stacks.set(output.inner, stack)
        others = [each for each in loop.states if each is not state]
        return [*read_stacks(stacks, [(output.inner,) for output in outputs], others, finals, ctx), *loops, scan]

    def _blocks_and_checks(self, plan: BlockPlan, inside: Builder) -> tuple[MatrixBlocks, list[ir.Value], ir.Value | None]:
        """Return a tuple (blocks, bounded, decays): the blocks, and the values that the If must check.

        All numbers in ``bounded`` must be finite and bounded. All numbers in ``decays`` must be at most 1 in magnitude; ``decays``
        is None if no decay needs a check at run time.
        """
        rows, matrix, stacks, constant = self.rows, self.rows.matrix, self.rows.stacks, self.constant
        steps = stacks.loop.steps
        if constant is not None and matrix.has_last and not (isinstance(steps, int) and steps % plan.length == 0):
            constant = None  # padding steps must not decay the last matrix
        keys, values = rows.whole(matrix.keys, matrix.key_axes), rows.whole(matrix.value_factor, matrix.values)
        queries = None if matrix.query is None else rows.whole(matrix.query, matrix.key_axes)
        by_key = matrix.key is not None and matrix.key in matrix.decay.named
        along = matrix.key_axes if by_key else ()
        decays = rows.whole(matrix.decay, along) if matrix.decay.factors and constant is None else None
        of_decays, bounded = None, [keys, values, *([queries] if queries is not None else [])]
        if decays is not None and self.constant is None and not by_key and is_never_negative(matrix.decay, stacks):
            of_decays = exponent(matrix.decay, stacks)
        keys = rows.rows(inside, keys, matrix.keys, matrix.key_axes, full=by_key)
        values = rows.rows(inside, values, matrix.value_factor, matrix.values)
        if matrix.query is not None and queries is not None:
            queries = rows.rows(inside, queries, matrix.query, matrix.key_axes)
        if decays is None:
            decay_rows = None
        elif of_decays is None:
            decay_rows = rows.rows(inside, decays, matrix.decay, along)
        else:
            decay_rows = rows.rows(inside, rows.whole(of_decays, ()), of_decays, ())
        initial, is_exponent = rows.state(inside), of_decays is not None
        cut = cut_steps(inside, steps if isinstance(steps, int) else emit_step_count(stacks.build, stacks.loop), plan.length, 3)
        blocks = MatrixBlocks(
            keys, values, queries, decay_rows, is_exponent, by_key, constant, initial, cut, plan.is_flat, rows.dtype
        )
        return blocks, bounded, decays if self.constant is None else None

    def _condition(self, bounded: list[ir.Value], decays: ir.Value | None, least: int) -> ir.Value:
        """Return a flag that is true if blocks compute the same as the loop and pay off.

        They pay off if there are at least ``least`` steps. ``bounded``, ``decays``: see ``_blocks_and_checks``.
        """
        build, loop, initial = self.rows.stacks.build, self.rows.stacks.loop, self.rows.matrix.state.initial
        known = isinstance(loop.steps, int)
        if known and static_dims(initial) is not None:
            return self._is_plain(build, bounded, decays)
        checks, none = self.ctx.builder(), self.ctx.builder()
        is_fit = build.op("Less", build.const([0]), build.op("Size", initial))
        if not known:
            is_fit = build.op("And", is_fit, build.op("Less", build.const([least - 1]), emit_step_count(build, loop)))
        answer = self._is_plain(checks, bounded, decays)
        no = none.op("Identity", none.const(np.array(False)))
        return write_if(build, is_fit, (checks, [answer]), (none, [no]), loop.node.name)[0]

    def _is_plain(self, build: Builder, bounded: list[ir.Value], decays: ir.Value | None) -> ir.Value:
        dtype, initial = self.rows.dtype, self.rows.matrix.state.initial
        array, largest = const_array(initial), _LARGEST[dtype.itemsize]
        answer = all_finite_and_bounded(build, [*bounded, *([decays] if decays is not None else [])], largest, dtype)
        has_signs = self.rows.matrix.has_last and not self.ctx.options.fast_math
        if array is None or not _is_small(array, largest):
            own = all_finite_and_bounded(build, [initial], largest, dtype, no_negative_zeros=has_signs)
            answer = build.op("And", answer, own)
        if decays is not None:
            above = build.const(np.asarray(np.nextafter(np.array(1, dtype), np.array(2, dtype)), dtype))
            size = build.op("ReduceMax", build.op("Abs", decays), keepdims=0)
            answer = build.op("And", answer, build.op("Less", size, above))
            if has_signs:
                lowest = build.op("ReduceMin", decays, keepdims=0)
                answer = build.op("And", answer, build.op("Less", build.const(np.array(0, dtype)), lowest))
        return answer


def _is_small(array: np.ndarray, largest: float) -> bool:
    """Return True if the squares of ``array`` add up to less than ``largest ** 2``, and no element is -0."""
    squares = float(np.square(array.astype(np.float64)).sum())
    return squares < largest * largest and not bool(np.signbit(array[array == 0]).any())


RULE = Rule("blocked-outer-products", "recurrence", "loop", check, recognises=True)
