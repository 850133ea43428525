"""A matrix that decays, takes up an outer product in each step, and is read by a product is computed block by block, by products.

    Scan(S0, ks, vs, qs) body(S, k, v, q) => (S2 = a S + k v, q S2)
    ->  If (numbers are plain) then Scan over blocks: (Q K^T * weights) V + (Q S) * weights, S = weight S + K^T (V * weights)
                               else the Scan as it was

A weight is what decays come to between two steps: the product of those in between, or e to the power of the sum of exponents. Where
each key has decays of its own, queries and keys are multiplied by them (``recurrences/outer_products/key_products.py``).

The loop stays, in the other branch of the If, for what is not finite, for keys, values, queries or a first matrix whose squares
come to 1e14 (1e200 in double), for decays beyond 1 or -1, and where the last matrix is of use, for decays of 0 or less and for -0
in the first. Sums come in another order; nothing else is different.

Conditions: float or double; nothing is taken away (no delta rules); decays are by head or by key; sizes of the matrix are known,
but for one of the heads; nothing else reads the matrix, but for its last value; the target runs Scan and If; it is faster than the
loop by a fifth. A loop that is to be compiled stays, where it has a plan.
"""

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.dependence import nodes_behind
from rewrites.base import since
from rewrites.fission.stackable import not_plain
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.loops import Loop, LoopView, ScanView
from rewrites.recurrences.linear.drive_rows import put_stacks
from rewrites.recurrences.or_loop import is_kept_loop
from rewrites.recurrences.outer_products.block_plan import block_shape, fewest_steps, plan_of
from rewrites.recurrences.outer_products.blocks_or_loop import BlocksOrLoop
from rewrites.recurrences.outer_products.head_rows import HeadRows
from rewrites.recurrences.outer_products.matrix_state import MatrixState, matrix_states
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule, is_to_be_compiled

__all__ = ["RULE", "check"]

_TYPES = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Look for a state that is such a matrix."""
    if isinstance(loop, LoopView) or not loop.states or ctx.opset < since.CUM_SUM or not_plain(loop, ctx) is not None:
        return NOTHING_HERE
    if is_kept_loop(loop, ctx):
        return NOTHING_HERE
    refusal: NotApplicable | None = None
    for found in matrix_states(loop, ctx.opset):
        answer = _unfit(loop, found, ctx) or _in_blocks(loop, found, ctx)
        if isinstance(answer, Patch):
            return answer
        refusal = refusal or answer
    return refusal or NOTHING_HERE


def _unfit(loop: ScanView, found: MatrixState, ctx: Context) -> NotApplicable | None:
    name = found.state.inner.name
    if found.written is not None:
        return NotApplicable("ATTENTION-BLOCKS", f"what the keys find in '{name}' is taken away, so blocks would depend on it")
    if found.state.inner.dtype not in _TYPES:
        return NotApplicable("ATTENTION-TYPE", f"'{name}' is neither float32 nor double")
    others = [*((found.key,) if found.key is not None else ()), *found.values]
    unknown = [label for label in (*found.heads, *others) if not isinstance(found.axes.size(label), int)]
    if len(unknown) > 1 or any(label in others for label in unknown):
        return NotApplicable("ATTENTION-SHAPE", f"more than one size of '{name}', or one of its matrices, is not known")
    if is_to_be_compiled(loop, ctx):
        return NotApplicable("ATTENTION-COST", "the plan of the loop, which is to be compiled, is faster than blocks of steps")
    if not ctx.options.target.loops or "If" not in ctx.options.target.control_flow:
        return NotApplicable("LINEAR-CORNERS", "a target without Scan and If could not keep the loop for what is not finite")
    return None


def _in_blocks(loop: ScanView, found: MatrixState, ctx: Context) -> Patch | NotApplicable:
    sizes, kind, name = StepSizes.of(loop, ctx), found.state.inner.dtype, found.state.inner.name
    assert kind is not None
    has_last = found.state.final is not None and bool(found.state.final.uses() or found.state.final.is_graph_output())
    if found.read is None and not has_last:
        return NOTHING_HERE
    stacks = Stacks(loop, ctx.builder())
    products = [found.decay, found.keys, found.taken, *([found.query] if found.query is not None else [])]
    refusal = put_stacks([factor.value for product in products for factor in product.factors], stacks, sizes)
    shape = block_shape(found, sizes)
    body = len(nodes_behind(loop.body, [found.state.next, *([found.read[0]] if found.read is not None else [])]))
    plan = plan_of(shape, sizes.options)
    least = fewest_steps(shape, plan, body, sizes.options)
    if refusal is None and plan.bytes > sizes.options.memory_budget:
        refusal = NotApplicable("MEMORY-BUDGET", f"'{name}' takes about {plan.bytes} bytes (limit {sizes.options.memory_budget})")
    if refusal is None and (least is None or (sizes.steps_known and shape.steps < least)):
        in_loop = sizes.options.costs.loop_ns(shape.steps, body, shape.state_bytes)
        took = f"take about {in_loop / 1000:.0f} µs in the loop and {plan.ns / 1000:.0f} µs in blocks"
        refusal = NotApplicable("ATTENTION-COST", f"{shape.steps} steps of '{name}' {took}")
    rows = HeadRows(found, stacks, np.dtype(kind.numpy()))
    constant = rows.constant(found.decay) if refusal is None and found.decay.factors else None
    refusal = refusal or _growing(constant, found, is_signed=has_last and not sizes.options.fast_math)
    if refusal is not None or least is None:
        stacks.build.discard()
        return refusal or NOTHING_HERE

    def edit() -> list[ir.Node]:
        return BlocksOrLoop(rows, loop, ctx, constant, has_last).put(plan, least)

    what = f"computed '{name}' in blocks of {plan.length} steps, by products of matrices"
    return Patch(f"{what}; an If keeps the loop for what is not finite", edit, sizes.note(plan.bytes, [found.state.inner]))


def _growing(constant: np.ndarray | None, found: MatrixState, *, is_signed: bool) -> NotApplicable | None:
    if constant is None or ((np.abs(constant) <= 1).all() and not (is_signed and (constant <= 0).any())):
        return None
    detail = f"'{found.state.inner.name}' is multiplied by {constant.flat[0]:g}, or others, in each step"
    return NotApplicable("ATTENTION-DECAY", f"{detail}: powers of that are too large, or zeros have other signs")


RULE = Rule("blocked-outer-products", "recurrence", "loop", check, recognises=True)
