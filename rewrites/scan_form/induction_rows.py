"""A tensor state becomes a scan input if each step adds the same constant to all its elements.

    Scan(n0, h0, xs) body(n, h, x) => (n - 1, f(h, x, n > 0))    ->    Scan(h0, xs, n0 - Range(T)) body(h, x, n) => f(h, x, n > 0)

For example, a model may count down the remaining steps of each batch element in one state.

Conditions:

* The state is int32 or int64 and has a known rank.
* Each step adds or subtracts a constant of one element.
* The loop is no opset-8 Scan, which has a separate state for each batch element.

Works around ONNX-OUTER-PRODUCT.
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import INTEGERS
from rewrites.analysis.induction.emission import emit_multiple
from rewrites.base.plain_text import listed
from rewrites.graph.context import Context
from rewrites.graph.replace import replace_value
from rewrites.graph.values import const_scalar, is_read, producer_of, rank_of, through_identity
from rewrites.loops import Loop, ScanInput, ScanView, State
from rewrites.ops.versions import count_up, reshape, shape_of, squeeze, unsqueeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scan_form.scanned_states import replace_states_by_scan_inputs

__all__ = ["RULE", "check"]


@dataclass(frozen=True)
class _CountingState:
    """A state with ``rank`` axes. Each step adds ``step`` to all its elements."""

    state: State
    rank: int
    step: int


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a Scan has a tensor state to whose elements each step adds the same constant."""
    if not isinstance(loop, ScanView) or loop.batched:
        return NOTHING_HERE
    variables = [counting for state in loop.states if (counting := _match_counting_state(loop, state)) is not None]
    if not variables:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        build = ctx.builder()
        first, backwards = loop.scan_inputs[0], all(scan.reverse for scan in loop.scan_inputs)
        steps = shape_of(build, first.outer, first.axis)
        numbers = count_up(build, steps)
        if backwards:
            numbers = build.op("Sub", build.op("Sub", steps, build.const([1])), numbers)
        inputs, finals = list[ScanInput](), list[tuple[ir.Value, ir.Value]]()
        for counting in variables:
            state = counting.state
            start = unsqueeze(build, state.initial, [0])
            # Reshape, because onnx's data propagation would still treat the numbers as a vector after an Unsqueeze
            moved = reshape(build, emit_multiple(build, numbers, counting.step, state.initial.dtype), [-1, *[1] * counting.rank])
            inputs.append(ScanInput(build.op("Add", start, moved), state.inner, 0, backwards))
            if state.final is not None and is_read(state.final):
                whole = squeeze(build, emit_multiple(build, steps, counting.step, state.initial.dtype), [0])
                finals.append((state.final, build.op("Add", state.initial, whole)))
        build.insert_before(loop.node)
        for old, new in finals:
            replace_value(old, new, ctx.names)
        return [replace_states_by_scan_inputs(loop, [counting.state for counting in variables], inputs, ctx)]

    names = listed(counting.state.inner.name for counting in variables)
    return Patch(f"made the counting states {names} scan inputs", edit)


def _match_counting_state(loop: ScanView, state: State) -> _CountingState | None:
    """Return ``state`` as a _CountingState if each step adds the same constant to all its elements."""
    node, rank = producer_of(through_identity(state.next), "Add", "Sub"), rank_of(state.inner)
    if node is None or node.graph is not loop.body or not rank or state.initial.dtype not in INTEGERS:
        return None
    positions = [i for i, value in enumerate(node.inputs) if through_identity(value) is state.inner]
    if len(positions) != 1 or (node.op_type == "Sub" and positions != [0]):
        return None
    added = node.inputs[1 - positions[0]]
    step = const_scalar(added)
    if added is None or step is None or not 0 < abs(int(step)) < 2**31 or (rank_of(added) or 0) > rank:
        return None
    return _CountingState(state, rank, -int(step) if node.op_type == "Sub" else int(step))


RULE = Rule("induction-rows", "scan_form", "loop", check, formerly="counted-rows")
