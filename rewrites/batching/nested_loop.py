"""A Loop inside the body that makes the same trips in every step: one Loop whose own body works on all steps of the outer loop.

    Loop(M, c, s0) body(i, c, s)    ->    Loop(M, c, s0') body(i, c, s')      stacked results are transposed behind the steps

Conditions: neither the trip count nor the condition, before or in the body, differs between steps; stacked results that carry the
steps need a known rank, and a first trip, since ORT guesses the sizes of what no trip made.

Works round ORT-LOOP-NO-STEPS-SIZES.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.batching.bodies import batched_body, body_for_all_steps, for_all_steps
from rewrites.batching.call import Call, Result
from rewrites.batching.emission import Emission
from rewrites.batching.table import rule
from rewrites.graph.marks import hand_on
from rewrites.graph.values import rank_of
from rewrites.loops import LoopView
from rewrites.ops.versions import transpose

__all__ = ["nested_loop"]


@rule("Loop")
def nested_loop(call: Call) -> Sequence[Result]:
    """Batch the body, with as few states carrying the steps as possible."""
    loop = LoopView.of(call.node, call.opset)
    call.same_each_step(0, 1)
    if any(not isinstance(value.type, ir.TensorType) for value in [*call.node.outputs, *loop.body.inputs]):
        raise call.refuse("CONTROL-FLOW", "a state or result is no tensor, or of unknown type")
    operands = [call.operand(index) for index in range(2, len(call.operands))]
    varies = [operand.batched for operand in operands]
    while True:
        inputs, inside = body_for_all_steps(call, loop.body, [False, False, *varies])
        grown = [not flag and inside.get(state.next).batched for flag, state in zip(varies, loop.states, strict=True)]
        if not any(grown):
            break
        inside.build.discard()
        varies = [flag or more for flag, more in zip(varies, grown, strict=True)]
    stacked = _stacked_results(call, loop, inside)
    flags = [False, *varies, *stacked]
    body = batched_body(inside, inputs, list(zip(loop.body.outputs, flags, strict=True)))
    initial = [for_all_steps(call, operand, flag) for operand, flag in zip(operands, varies, strict=True)]
    made = call.build.node(
        "Loop", [call.value(0), call.value(1), *initial], len(flags) - 1, [ir.AttrGraph("body", body)], hint=call.node.name
    )
    hand_on(call.node, call.build.nodes[-1])
    results = []
    for value, like in zip(made, loop.body.outputs[1:], strict=True):
        value.type = like.type if value.type is None else value.type
        results.append(value)
    for i, (output, flag) in enumerate(zip(loop.scan_outputs, stacked, strict=True), start=len(varies)):
        rank = rank_of(output.inner)
        if flag and rank is not None:
            results[i] = transpose(call.build, results[i], [1, 0, *range(2, rank + 2)])
    return [Result(value, flag) for value, flag in zip(results, flags[1:], strict=True)]


def _stacked_results(call: Call, loop: LoopView, inside: Emission) -> list[bool]:
    """Tell which stacked results carry the steps; refuses, leaving nothing behind, where that cannot be written."""
    stacked = [inside.get(output.inner).batched for output in loop.scan_outputs]
    reason = None
    if inside.get(loop.condition_out).batched:
        reason = call.refuse("BATCHED-STRUCTURE", "whether it goes on differs between steps")
    for output, flag in zip(loop.scan_outputs, stacked, strict=True):
        if flag and rank_of(output.inner) is None:
            reason = call.refuse("RANK-UNKNOWN", f"the rank of {output.inner.name!r} is not known")
        elif flag and not loop.always_runs:
            reason = call.refuse("EMPTY-STEPS", "it may make no trip, and the sizes of its stacked results would be guesses")
    if reason is not None:
        inside.build.discard()
        raise reason
    return stacked
