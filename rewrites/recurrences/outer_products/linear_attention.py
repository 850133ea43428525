"""A matrix that decays, takes up an outer product in each step, and is read by a product becomes one LinearAttention.

    Scan(S0, ks, vs, qs) body(S, k, v, q) => (S2 = S + k v, q S2)    ->    com.microsoft.LinearAttention(qs, ks, vs, S0)

However that is written: with decays, by head or by key, and taking away what the keys find before (delta rules). States that lie
side by side are heads. Conditions: the target has ``com.microsoft``; float32, of which alone onnxruntime has a kernel; sizes of the
matrix are known; decays are surely not negative, since the operator takes their logarithms; nothing else reads the matrix, but for
its last value; it is faster than the loop, and than blocks of steps (``blocked_outer_products.py``). onnxruntime's kernel goes step
by step, so what is not finite comes to no step before; but the kernel adds (q k) v to what the query reads of the matrix before, so
infinities may be NaN, and the other way round, and q k may overflow where q (k v) does not.
"""

from math import prod

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.dependence import nodes_behind, not_repeatable
from rewrites.base import since
from rewrites.base.plain_text import counted
from rewrites.fission.stackable import not_plain
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.graph.marks import ROLLED_UP
from rewrites.loops import Loop, LoopView, ScanView
from rewrites.recurrences.cumulative.rows import is_filled
from rewrites.recurrences.given_states import Wanted, give
from rewrites.recurrences.outer_products.block_plan import attention_ns, block_shape, plan_of
from rewrites.recurrences.outer_products.decays import exponents, is_never_negative
from rewrites.recurrences.outer_products.matrix_state import MatrixState, matrix_states
from rewrites.recurrences.outer_products.packed import Packing
from rewrites.recurrences.outer_products.terms import Product
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule, is_to_be_compiled

__all__ = ["RULE", "check"]

_DOMAIN = "com.microsoft"

_BLOCKS = "blocked-outer-products"
_MARGIN = 1.1
_FEW_VALUES, _LARGE = 4, 32
"""Measured on onnxruntime 1.32, one thread: LinearAttention is 2 to 14 times faster than what is left of the loop otherwise. With
rows of fewer than 4 values it is 0.5 to 7 times as fast. Against plans of loops it is 1.3 to 2.6 times faster for 32 keys of 32
values and more, and 0.25 to 0.9 times as fast for fewer.
"""
_HEAD_NS, _ROW_NS, _DECAY_NS = 12, 3.5, 2
"""What LinearAttention and its operands take in each step with such short rows: for a head, for a row of its matrix, and for
each row that has a decay of its own. Measured for 4 to 64 keys, 64 to 4096 steps; within 30 %.
"""


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Look for a state that is such a matrix."""
    if isinstance(loop, LoopView) or not loop.states or not_plain(loop, ctx) is not None or ctx.opset < since.SLICE_INPUTS:
        return NOTHING_HERE
    refusal: NotApplicable | None = None
    for found in matrix_states(loop, ctx.opset):
        answer = _attended(loop, found, ctx)
        if isinstance(answer, Patch):
            return answer
        refusal = refusal or answer
    return refusal or NOTHING_HERE


def _attended(loop: ScanView, found: MatrixState, ctx: Context) -> Patch | NotApplicable:
    name, state, sizes = found.state.inner.name, found.state, StepSizes.of(loop, ctx)
    if _DOMAIN not in ctx.options.domains:
        return NotApplicable("ATTENTION-TARGET", f"'{name}' could be computed by LinearAttention, which the target lacks")
    if state.inner.dtype != ir.DataType.FLOAT:
        return NotApplicable("ATTENTION-TYPE", f"'{name}' is no float32, of which alone LinearAttention has a kernel")
    unknown = tuple(label for label in found.heads if not isinstance(found.axes.size(label), int))
    others = [*((found.key,) if found.key is not None else ()), *found.values]
    if len(unknown) > 1 or any(not isinstance(found.axes.size(label), int) for label in others):
        return NotApplicable("ATTENTION-SHAPE", f"more than one size of '{name}', or one of its matrices, is not known")
    stacks = Stacks(loop, ctx.builder())
    packing = Packing(found, stacks, unknown, tuple(label for label in found.heads if label not in unknown))
    reason = _too_slow(packing, sizes, loop, ctx) or _operand_refused(packing, sizes)
    if reason is None and not is_never_negative(found.decay, stacks):
        reason = NotApplicable("ATTENTION-DECAY", f"what '{name}' is multiplied by in each step may be negative")
    if reason is not None:
        stacks.build.discard()
        return reason
    final = state.final is not None and bool(state.final.uses() or state.final.is_graph_output())
    last = _place(packing, final)

    def edit() -> list[ir.Node]:
        ctx.model.opset_imports.setdefault(_DOMAIN, 1)
        need = Wanted(
            state, () if found.read is None else (found.read[0],), before=False, after=found.read is not None, final=final
        )
        return give(loop, need, stacks, last, ctx)

    rule = _update_rule(found).replace("_", " ")
    return Patch(
        f"computed '{name}' for all steps at once by LinearAttention, {rule}", edit, sizes.note(_taken(packing, sizes), [])
    )


def _update_rule(found: MatrixState) -> str:
    if found.written is not None:
        return "gated_delta" if found.decay.factors else "delta"
    return "gated" if found.decay.factors else "linear"


def _place(packing: Packing, final: bool) -> ir.Value | None:
    """Put what is read of the state into the stacks; return its last value where that is needed."""
    found, stacks, b = packing.found, packing.stacks, packing.b
    key = () if found.key is None else (found.key,)
    keys, values = packing.product(found.keys, key), packing.product(found.taken, found.values)
    query = keys if found.query is None else packing.product(found.query, key)
    past = None if is_filled(found.state.initial, 0) and not packing.batch else packing.state()
    decay, written = None, None
    if found.decay.factors:
        along = key if found.key in found.decay.named else ()
        decay = exponents(found.decay, stacks, lambda product: packing.product(product, along))
    if found.written is not None:
        written = packing.product(found.written, ())
    output, present = b.ops(
        "LinearAttention",
        [query, keys, values, past, decay, written],
        2,
        domain=_DOMAIN,
        q_num_heads=packing.count,
        kv_num_heads=packing.count,
        update_rule=_update_rule(found),
        scale=1.0,
    )
    for value in (output, present):
        value.dtype = ir.DataType.FLOAT
    if keys.shape is not None:
        output.shape = ir.Shape([keys.shape[0], keys.shape[1], packing.size((*packing.heads, *found.values))])
        present.shape = ir.Shape([keys.shape[0], packing.count, packing.size(key), packing.size(found.values)])
    if found.read is not None:
        value, labels = found.read
        stacks.place(value, packing.unpacked(output, labels))
    return packing.unpacked_state(present) if final else None


def _too_slow(packing: Packing, sizes: StepSizes, loop: ScanView, ctx: Context) -> NotApplicable | None:
    """Return a reason if the loop is as fast: the kernel goes row by row, so short rows cost it more than elementwise nodes."""
    found = packing.found
    keys, values = packing.size(() if found.key is None else (found.key,)), packing.size(found.values)
    if min(keys, values) < _LARGE and is_to_be_compiled(loop, ctx):
        return NotApplicable("ATTENTION-COST", "the plan of the loop, which is to be compiled, is faster than LinearAttention")
    name = found.state.inner.name
    if sizes.steps_known and _is_faster_in_blocks(packing, sizes, loop, ctx):
        return NotApplicable("ATTENTION-COST", f"{sizes.steps} steps of '{name}' are faster in blocks than by LinearAttention")
    if values >= _FEW_VALUES:
        return None
    heads, by_key = _heads(packing, sizes), found.key is not None and found.key in found.decay.named
    attention = heads * (_HEAD_NS + keys * (_ROW_NS + by_key * _DECAY_NS))
    if attention <= _step_ns(loop, sizes, sizes.step(found.state.inner)):
        return None
    rows = heads * keys
    return NotApplicable(
        "ATTENTION-COST",
        f"'{name}' has {rows} rows of {counted(values, 'value')}, for which LinearAttention is slower than the loop",
    )


def _step_ns(loop: ScanView, sizes: StepSizes, state_bytes: int) -> float:
    """Return what a step takes otherwise: in the loop, or written out as it was, with a node for each row read."""
    costs, nodes = sizes.options.costs, sum(node.op_type not in ("Constant", "Identity") for node in loop.body)
    if ROLLED_UP.of(loop.node):
        return costs.operator * (nodes + len(loop.scan_inputs))
    return costs.step + costs.node * nodes + costs.loop_byte * state_bytes


def _is_faster_in_blocks(packing: Packing, sizes: StepSizes, loop: ScanView, ctx: Context) -> bool:
    shape, costs = block_shape(packing.found, sizes), sizes.options.costs
    if plan_of(shape, sizes.options).ns * _MARGIN >= attention_ns(shape, costs):
        return False
    rules = [rule for rule in ctx.rules if rule.name == _BLOCKS and all(veto.rule != _BLOCKS for veto in ctx.vetoes.all)]
    return any(isinstance(rule.check(loop, ctx), Patch) for rule in rules)


def _heads(packing: Packing, sizes: StepSizes) -> int:
    """Return how many matrices lie side by side, as far as that is known."""
    known = (packing.found.axes.size(label) for label in packing.batch)
    batch = (size if isinstance(size, int) else sizes.options.sizes.get(size or "", sizes.options.assumed_dim) for size in known)
    return prod(batch) * packing.count


def _taken(packing: Packing, sizes: StepSizes) -> int:
    found = packing.found
    rows = 4 * _heads(packing, sizes)
    key, values = packing.size(() if found.key is None else (found.key,)), packing.size(found.values)
    return rows * (3 * key + 2 * values) * sizes.steps


def _operand_refused(packing: Packing, sizes: StepSizes) -> NotApplicable | None:
    """Put what comes to the state into the stacks; return a reason where it cannot be had for all steps."""
    found, stacks = packing.found, packing.stacks
    products: list[Product | None] = [found.decay, found.keys, found.taken, found.written, found.query]
    values = [factor.value for product in products if product is not None for factor in product.factors]
    nodes = nodes_behind(stacks.body, values)
    stacked = [value for node in nodes for value in node.outputs] + ([found.read[0]] if found.read is not None else [])
    reason = next((why for node in nodes if (why := not_repeatable(node))), None)
    reason = reason or next((why for value in stacked if (why := sizes.not_a_stack(value))), None)
    if reason is not None:
        return reason
    taken, limit = _taken(packing, sizes), sizes.options.memory_budget
    if taken > limit:
        name = found.state.inner.name
        return NotApplicable(
            "MEMORY-BUDGET", f"what comes to '{name}' takes about {taken} bytes for all steps at once (limit {limit})"
        )
    return stacks.add_all(nodes)


RULE = Rule("linear-attention", "recurrence", "loop", check, recognises=True)
