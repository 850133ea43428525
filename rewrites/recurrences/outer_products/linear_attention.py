"""Compute accumulated outer products, and their products with queries, by one LinearAttention.

    Scan(S0, ks, vs, qs) body(S, k, v, q) => (S2 = S + k v, q S2)    ->    com.microsoft.LinearAttention(qs, ks, vs, S0)

A state may consist of several independent matrices, the heads. Each step may multiply the matrix by a decay, one for each head or
one for each key. A step may also follow the delta rule, which first subtracts the product of key and matrix from the value.

onnxruntime's kernel computes step by step, so an infinity does not affect earlier steps. But the kernel computes ``q S + (q k) v``
instead of ``q (S + k v)``. So an infinity may become NaN, NaN may become an infinity, and ``q k`` may overflow although
``q (k v)`` does not.

Conditions:

* The target has ``com.microsoft``.
* The state is float32, the only type of onnxruntime's kernel.
* All sizes of the state are known, except perhaps one size of the heads.
* The decays are known not to be negative, because the operator takes their logarithms.
* In the body, only one product with a query reads the matrix. After the loop, other nodes may read the last matrix.
* The operator is faster than the loop and than blocks of steps (``blocked_outer_products.py``).
"""

from math import prod

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.base.plain_text import counted
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.graph.marks import ROLLED_UP
from rewrites.loops import Loop, ScanView
from rewrites.recurrences.closed_form import first_patch, over_budget, plain_scan, plan_is_faster
from rewrites.recurrences.cumulative.accumulation import is_filled
from rewrites.recurrences.outer_products.block_plan import attention_ns, block_shape, plan_of
from rewrites.recurrences.outer_products.exponents import exponents, is_never_negative
from rewrites.recurrences.outer_products.head_rows import Packing
from rewrites.recurrences.outer_products.matrix_state import MatrixState, matrix_states
from rewrites.recurrences.results import put_stacks, read_stacks
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_DOMAIN = "com.microsoft"

_BLOCKS = "blocked-outer-products"
_MARGIN = 1.1
_FEW_VALUES, _LARGE = 4, 32
"""Measured on onnxruntime 1.32, one thread: LinearAttention is 2 to 14 times faster than the loop that other rules would keep. With
rows of fewer than 4 values it is 0.5 to 7 times as fast. Compared with plans of loops, it is 1.3 to 2.6 times faster for at least
32 keys of 32 values, and 0.25 to 0.9 times as fast for fewer.
"""
_HEAD_NS, _ROW_NS, _DECAY_NS = 12, 3.5, 2
"""The time per step of LinearAttention and its operands if rows have fewer than ``_FEW_VALUES`` values: per head, per row of a
matrix, and per row with its own decay. Measured for 4 to 64 keys, 64 to 4096 steps; within 30 %.
"""


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return the patch for the first matrix state of ``loop`` that LinearAttention can compute."""
    scan = plain_scan(loop, ctx, since.SLICE_INPUTS, needs_fallback=False)
    if scan is None:
        return NOTHING_HERE
    return first_patch(_attended(scan, matrix, ctx) for matrix in matrix_states(scan, ctx.opset))


def _attended(loop: ScanView, matrix: MatrixState, ctx: Context) -> Patch | NotApplicable:
    name = matrix.state.inner.name
    if _DOMAIN not in ctx.options.domains:
        return NotApplicable("ATTENTION-TARGET", f"'{name}' could be computed by LinearAttention, which the target lacks")
    if matrix.state.inner.dtype != ir.DataType.FLOAT:
        return NotApplicable("ATTENTION-TYPE", f"'{name}' is not float32, the only type of LinearAttention's kernel")
    reason = matrix.unknown_sizes()
    if reason is not None:
        return reason
    return _Attention(Packing(matrix, Stacks(loop, ctx.builder())), loop, ctx).answer()


class _Attention:
    """Replaces a matrix state of ``loop`` by a LinearAttention. ``packing`` writes its operands."""

    def __init__(self, packing: Packing, loop: ScanView, ctx: Context) -> None:
        self.packing, self.loop, self.ctx, self.sizes = packing, loop, ctx, StepSizes.of(loop, ctx)
        matrix, options = packing.matrix, ctx.options
        self.name = f"'{matrix.state.inner.name}'"
        known = [matrix.axes.size(label) for label in packing.batch]
        batch = (size if isinstance(size, int) else options.sizes.get(size or "", options.assumed_dim) for size in known)
        self.heads = prod(batch) * packing.count  # the number of independent matrices
        rows = 3 * matrix.size(matrix.key_axes) + 2 * matrix.size(matrix.values)
        self.stack_bytes = 4 * self.heads * rows * self.sizes.steps  # of all operands and of the result
        plain, with_delta = ("gated", "gated_delta") if matrix.decay.factors else ("linear", "delta")
        self.update_rule = plain if matrix.delta_factor is None else with_delta

    def answer(self) -> Patch | NotApplicable:
        """Return the patch, or the reason to keep the matrix in the loop."""
        matrix, stacks, ctx = self.packing.matrix, self.packing.stacks, self.ctx
        reason = self._too_slow() or (None if matrix.read is None else self.sizes.stack_obstacle(matrix.read[0]))
        reason = reason or over_budget(f"the operands of {self.name} take", self.stack_bytes, ctx, "for all steps at once")
        reason = reason or put_stacks(matrix.factors, stacks, self.sizes)
        if reason is None and not is_never_negative(matrix.decay, stacks):
            reason = NotApplicable("ATTENTION-DECAY", f"a decay of {self.name} may be negative")
        if reason is not None:
            stacks.build.discard()
            return reason
        finals = [(matrix.state.final, last)] if (last := self._place()) is not None else []
        others = [state for state in self.loop.states if state is not matrix.state]

        def edit() -> list[ir.Node]:
            ctx.model.opset_imports.setdefault(_DOMAIN, 1)
            return read_stacks(stacks, [] if matrix.read is None else [matrix.read[:1]], others, finals, ctx)

        what = f"computed {self.name} for all steps at once by LinearAttention, {self.update_rule.replace('_', ' ')}"
        return Patch(what, edit, self.sizes.memory_note(self.stack_bytes, []))

    def _place(self) -> ir.Value | None:
        """Write the LinearAttention and put its result into the stacks.

        Return the matrix after the last step if it is read, else None.
        """
        packing, matrix, stacks, key = self.packing, self.packing.matrix, self.packing.stacks, self.packing.matrix.key_axes
        keys, values = packing.product(matrix.keys, key), packing.product(matrix.value_factor, matrix.values)
        query = keys if matrix.query is None else packing.product(matrix.query, key)
        past = None if is_filled(matrix.state.initial, 0) and not packing.batch else packing.state()
        decay, delta_factor = None, None
        if matrix.decay.factors:
            along = key if matrix.key in matrix.decay.named else ()
            decay = exponents(matrix.decay, stacks, lambda product: packing.product(product, along))
        if matrix.delta_factor is not None:
            delta_factor = packing.product(matrix.delta_factor, ())
        output, present = stacks.build.ops(
            "LinearAttention",
            [query, keys, values, past, decay, delta_factor],
            2,
            domain=_DOMAIN,
            q_num_heads=packing.count,
            kv_num_heads=packing.count,
            update_rule=self.update_rule,
            scale=1.0,
        )
        for value in (output, present):
            value.dtype = ir.DataType.FLOAT
        if keys.shape is not None:
            output.shape = ir.Shape([keys.shape[0], keys.shape[1], matrix.size((*packing.heads, *matrix.values))])
            present.shape = ir.Shape([keys.shape[0], packing.count, matrix.size(key), matrix.size(matrix.values)])
        if matrix.read is not None:
            value, labels = matrix.read
            stacks.set(value, packing.unpacked(output, labels))
        return packing.unpacked_state(present) if matrix.has_last else None

    def _too_slow(self) -> NotApplicable | None:
        """Return a reason if the loop or blocks of steps are at least as fast as LinearAttention.

        The kernel of LinearAttention works row by row, so it is slow for short rows.
        """
        matrix, sizes, loop, heads = self.packing.matrix, self.sizes, self.loop, self.heads
        keys, values = matrix.size(matrix.key_axes), matrix.size(matrix.values)
        plan = plan_is_faster(loop, self.ctx, "ATTENTION-COST", "LinearAttention") if min(keys, values) < _LARGE else None
        if plan is not None:
            return plan
        if sizes.steps_known and self._is_faster_in_blocks():
            detail = f"{sizes.steps} steps of {self.name} are faster in blocks than by LinearAttention"
            return NotApplicable("ATTENTION-COST", detail)
        by_key = matrix.key is not None and matrix.key in matrix.decay.named
        attention = heads * (_HEAD_NS + keys * (_ROW_NS + by_key * _DECAY_NS))
        if values >= _FEW_VALUES or attention <= _step_ns(loop, sizes, sizes.step_bytes(matrix.state.inner)):
            return None
        rows = f"{heads * keys} rows of {counted(values, 'value')}"
        return NotApplicable("ATTENTION-COST", f"{self.name} has {rows}, for which LinearAttention is slower than the loop")

    def _is_faster_in_blocks(self) -> bool:
        shape, options, ctx = block_shape(self.packing.matrix, self.sizes), self.sizes.options, self.ctx
        if plan_of(shape, options).ns * _MARGIN >= attention_ns(shape, options.costs):
            return False
        rules = [rule for rule in ctx.rules if rule.name == _BLOCKS and all(veto.rule != _BLOCKS for veto in ctx.vetoes.all)]
        return any(isinstance(rule.check(self.loop, ctx), Patch) for rule in rules)


def _step_ns(loop: ScanView, sizes: StepSizes, state_bytes: int) -> float:
    """Return the estimated time of a step in the loop, in ns.

    If the steps of ``loop`` were unrolled in the original model, return the time of the nodes of one unrolled step.
    """
    costs, nodes = sizes.options.costs, sum(node.op_type not in ("Constant", "Identity") for node in loop.body)
    if ROLLED_UP.of(loop.node):
        return costs.operator * (nodes + len(loop.scan_inputs))
    return costs.step + costs.node * nodes + costs.loop_byte * state_bytes


RULE = Rule("linear-attention", "recurrence", "loop", check, recognises=True, computes="linear attention")
