"""A Scan inside the body: one Scan whose own body works on all steps of the outer loop at once.

    ys = Scan(h0, xs) body(h, x)    ->    ys' = Transpose(Scan(h0', Transpose(xs')) body(h', x'))

The scanned axes of what carries the steps lie behind those, and are moved to the front outside: onnxruntime ends the process where
a Scan has another axis than 0 and any size is 0. A state carries the steps if its initial value does, or if a step of the Scan
makes it so. Never touches an opset-8 Scan.

Works round ORT-SCAN-MOVED-AXES.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.batching.bodies import batched_body, body_for_all_steps, for_all_steps
from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule
from rewrites.graph.marks import hand_on
from rewrites.graph.values import rank_of
from rewrites.loops import ScanInput, ScanOutput, ScanView, State, make_scan
from rewrites.ops.versions import transpose

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
    entering = [
        _Axis.of(scan.axis, scan.inner, flag, operand.value)
        for scan, operand, flag in zip(loop.scan_inputs, operands[count:], varies[count:], strict=True)
    ]
    leaving = [
        _Axis.of(output.axis, output.inner, flag) for output, flag in zip(loop.scan_outputs, result_varies[count:], strict=True)
    ]
    if any(one.place and one.rank is None for one in (*entering, *leaving)):
        inside.build.discard()
        raise call.refuse("RANK-UNKNOWN", "the rank of what the Scan cuts or stacks is not known")
    body = batched_body(inside, inputs, list(zip(loop.body.outputs, result_varies, strict=True)))
    states = [State(for_all_steps(call, operands[i], varies[i]), inputs[i], body.outputs[i], None) for i in range(count)]
    scans = [
        ScanInput(one.to_front(call, operand.value), inner, 0, scan.reverse)
        for one, scan, operand, inner in zip(entering, loop.scan_inputs, operands[count:], inputs[count:], strict=True)
    ]
    outputs = [
        ScanOutput(value, None, 0, output.reverse) for value, output in zip(body.outputs[count:], loop.scan_outputs, strict=True)
    ]
    node = make_scan(call.build.names, body, states, scans, outputs, call.node.name or "Scan")
    hand_on(call.node, node)
    call.build.nodes.append(node)
    stacks = [one.from_front(call, value) for one, value in zip(leaving, node.outputs[count:], strict=True)]
    return [Result(value, flag) for value, flag in zip([*node.outputs[:count], *stacks], result_varies, strict=True)]


@dataclass(frozen=True)
class _Axis:
    """The ``place`` of a scanned axis in a tensor of some ``rank``."""

    place: int
    rank: int | None

    @classmethod
    def of(cls, axis: int, inner: ir.Value, varies: bool, outer: ir.Value | None = None) -> "_Axis":
        """Find both from a slice in one step, and from the whole where that is known."""
        rank, known = rank_of(inner), None if outer is None else rank_of(outer)
        return cls(axis + varies, rank + 1 + varies if known is None and rank is not None else known)

    def to_front(self, call: Call, x: ir.Value) -> ir.Value:
        """Move the axis of ``x`` before all others."""
        order = [self.place, *(i for i in range(self.rank or 0) if i != self.place)]
        return transpose(call.build, x, order) if self.place else x

    def from_front(self, call: Call, x: ir.Value) -> ir.Value:
        """Move the first axis of ``x`` to its place."""
        order = [*range(1, self.place + 1), 0, *range(self.place + 1, self.rank or 0)]
        return transpose(call.build, x, order) if self.place else x
