"""A reversal before or after a Scan becomes a direction of the Scan, which costs nothing.

    ys = Reverse(Scan(Reverse(xs)))    ->    ys = Scan <scan_input_directions = [1], scan_output_directions = [1]> (xs)

A reversal is a Slice, Gather or ReverseSequence that provably reverses a whole axis; Transposes may stand between it and the
Scan. A result is reversed where all that is made of it is such reversals, and questions for its shape; also a result that leaves an
If whose other branch gives no step, or one. Never done where more would have to be reversed than was once the loop is gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from rewrites.analysis.whole_reversals import Reversals
from rewrites.base import since
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.loops import Loop, LoopView, ScanInput, ScanOutput, ScanView, rebuild
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scan_form.around_reversals import Unturned, turning_readers, unturned

__all__ = ["RULE", "check"]


@dataclass(frozen=True)
class _Turned:
    """``scan`` reads a reversed tensor."""

    scan: ScanInput
    before: Unturned


@dataclass(frozen=True)
class _Unturned:
    """``output`` is read by these reversals only."""

    output: ScanOutput
    reversals: Sequence[ir.Node]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Find reversals around a Scan."""
    if isinstance(loop, LoopView) or loop.batched:
        return NOTHING_HERE
    reversals = Reversals(ctx.opset, ctx.model.graph)
    inputs, outputs = list[_Turned](), list[_Unturned]()
    for scan in loop.scan_inputs:
        before = unturned(scan.outer, scan.axis, reversals)
        if before is not None:
            inputs.append(_Turned(scan, before))
    for output in loop.scan_outputs:
        readers = [] if output.outer is None else turning_readers(output.outer, output.axis, reversals, ctx)
        if readers:
            outputs.append(_Unturned(output, readers))
    for some, others in ((inputs, outputs), (inputs, []), ([], outputs)):
        if (some or others) and _gains(loop, some, others, ctx.opset):
            break
    else:
        return NOTHING_HERE
    count = len(some) + sum(len(each.reversals) for each in others)
    what = f"made {count} reversals around the Scan directions" if count > 1 else "made a reversal beside the Scan a direction"
    return Patch(f"{what} of it", lambda: _edit(loop, some, others, ctx))


def _reversals(inputs: Sequence[_Turned], outputs: Sequence[_Unturned]) -> int:
    return sum(each.before.removes for each in inputs) + sum(len(each.reversals) for each in outputs)


def _gains(loop: ScanView, inputs: Sequence[_Turned], outputs: Sequence[_Unturned], opset: int) -> bool:
    """Whether no more has to be reversed for a loop that is written as operators on all steps, or that can do so anyway."""
    turned = {id(each.scan) for each in inputs} | {id(each.output) for each in outputs}
    before = [[part.reverse for part in parts] for parts in (loop.scan_inputs, loop.scan_outputs)]
    parts = (loop.scan_inputs, loop.scan_outputs)
    after = [[part.reverse != (id(part) in turned) for part in each] for each in parts]
    if opset < since.SLICE_INPUTS and len({*after[0], *after[1]}) > 1:
        return False
    return _flips(*after) <= _flips(*before) + _reversals(inputs, outputs)


def _flips(inputs: Sequence[bool], outputs: Sequence[bool]) -> int:
    return sum(reverse != all(inputs) for reverse in (*inputs, *outputs))


def _edit(loop: ScanView, inputs: Sequence[_Turned], outputs: Sequence[_Unturned], ctx: Context) -> list[ir.Node]:
    build = ctx.builder()
    turned = {id(each.scan): replace(each.scan, outer=each.before.write(build), reverse=not each.scan.reverse) for each in inputs}
    build.insert_before(loop.node)
    for each in outputs:
        for node in each.reversals:
            source = node.inputs[0]
            assert source is not None
            replace_value(node.outputs[0], source, ctx.names)
            remove_nodes([node])
    others = {id(each.output): replace(each.output, reverse=not each.output.reverse) for each in outputs}
    return [
        rebuild(
            loop,
            ctx.names,
            scan_inputs=[turned.get(id(scan), scan) for scan in loop.scan_inputs],
            scan_outputs=[others.get(id(output), output) for output in loop.scan_outputs],
        )
    ]


RULE = Rule("reversals", "scan_form", "loop", check)
