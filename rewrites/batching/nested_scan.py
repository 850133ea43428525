"""A Scan inside the body: one Scan whose own body works on all steps of the outer loop at once.

    Scan(h0, xs) body(h, x)    ->    Scan(h0', xs') body(h', x')      scanned axes move one to the right, behind the steps

A state carries the steps if its initial value does, or if a step of the Scan makes it so. Never touches an opset-8 Scan.
"""

from collections.abc import Sequence

from rewrites.batching.bodies import batched_body, body_for_all_steps, for_all_steps
from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule
from rewrites.loop_entries import hand_on
from rewrites.loops import ScanInput, ScanOutput, ScanView, State, make_scan

__all__ = ["nested_scan"]


@rule("Scan", since=9)
def nested_scan(call: Call) -> Sequence[Result]:
    """Batch the body, with as few states carrying the steps as possible."""
    loop = ScanView.of(call.node, call.opset)
    operands = [call.operand(index) for index in range(len(call.operands))]
    count = len(loop.states)
    if any(scan.axis < 0 for scan in loop.scan_inputs) or any(output.axis < 0 for output in loop.scan_outputs):
        raise call.refuse("RANK-UNKNOWN", "a scanned axis counts from the end of a tensor of unknown rank")
    varies = [operand.batched for operand in operands]
    while True:
        inputs, inside = body_for_all_steps(call, loop.body, varies)
        grown = [state.next for i, state in enumerate(loop.states) if not varies[i] and inside.get(state.next).batched]
        if not grown:
            break
        inside.build.discard()
        varies = [flag or (i < count and loop.states[i].next in grown) for i, flag in enumerate(varies)]
    result_varies = [*varies[:count], *(inside.get(output.inner).batched for output in loop.scan_outputs)]
    body = batched_body(inside, inputs, list(zip(loop.body.outputs, result_varies, strict=True)))
    states = [State(for_all_steps(call, operands[i], varies[i]), inputs[i], body.outputs[i], None) for i in range(count)]
    scans = [
        ScanInput(operand.value, inputs[count + i], scan.axis + varies[count + i], scan.reverse)
        for i, (scan, operand) in enumerate(zip(loop.scan_inputs, operands[count:], strict=True))
    ]
    outputs = [
        ScanOutput(body.outputs[count + i], None, output.axis + result_varies[count + i], output.reverse)
        for i, output in enumerate(loop.scan_outputs)
    ]
    node = make_scan(call.build.names, body, states, scans, outputs, call.node.name or "Scan")
    hand_on(call.node, node)
    call.build.nodes.append(node)
    return [Result(value, flag) for value, flag in zip(node.outputs, result_varies, strict=True)]
