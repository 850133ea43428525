"""A reversal of an operand or result of a Scan becomes a direction attribute, which costs nothing.

    ys = Reverse(Scan(Reverse(xs)))    ->    ys = Scan <scan_input_directions = [1], scan_output_directions = [1]> (xs)

A reversal is a Slice, Gather or ReverseSequence that is known to reverse a complete axis. Transposes, Squeezes and Unsqueezes may
be between the reversal and the Scan. The rule changes the direction of a result if all nodes that read the result reverse it or
read only its shape. If the Scan is in a branch of an If, these nodes may also read the result of the If. Then the other branch must
return at most one step.

Later rules may replace the Scan by other operators, which need a reversal wherever directions differ. So this rule does not apply
if the other operators would then need more reversals than before.
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
from rewrites.scan_form.around_reversals import ReversalSource, reversal_source, reversing_users

__all__ = ["RULE", "check"]


@dataclass(frozen=True)
class _ReversedInput:
    """The scan input ``scan``, which reads a reversed tensor, and the ``source`` of this tensor."""

    scan: ScanInput
    source: ReversalSource


@dataclass(frozen=True)
class _ReversedOutput:
    """The scan output ``output``, and the nodes that reverse it. No other node reads its elements."""

    output: ScanOutput
    reversals: Sequence[ir.Node]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if operands or results of a Scan are reversed."""
    if isinstance(loop, LoopView) or loop.batched:
        return NOTHING_HERE
    reversals = Reversals(ctx.opset, ctx.model.graph)
    sources = ((scan, reversal_source(scan.outer, scan.axis, reversals)) for scan in loop.scan_inputs)
    inputs = [_ReversedInput(scan, source) for scan, source in sources if source is not None]
    stacks = ((output, output.outer) for output in loop.scan_outputs if output.outer is not None)
    users = ((output, reversing_users(stack, output.axis, reversals, ctx)) for output, stack in stacks)
    outputs = [_ReversedOutput(output, reversing) for output, reversing in users if reversing]
    for changed_inputs, changed_outputs in ((inputs, outputs), (inputs, []), ([], outputs)):
        if (changed_inputs or changed_outputs) and _saves_reversals(loop, changed_inputs, changed_outputs, ctx.opset):
            break
    else:
        return NOTHING_HERE
    count = len(changed_inputs) + sum(len(each.reversals) for each in changed_outputs)
    what = f"made {count} reversals around the Scan directions" if count > 1 else "made a reversal beside the Scan a direction"
    return Patch(f"{what} of it", lambda: _edit(loop, changed_inputs, changed_outputs, ctx))


def _saves_reversals(loop: ScanView, inputs: Sequence[_ReversedInput], outputs: Sequence[_ReversedOutput], opset: int) -> bool:
    """Return True if other operators in place of the loop would not need more reversals than before."""
    changed = {id(item.scan) for item in inputs} | {id(item.output) for item in outputs}
    parts = (loop.scan_inputs, loop.scan_outputs)
    before = [[part.reverse for part in side] for side in parts]
    after = [[part.reverse != (id(part) in changed) for part in side] for side in parts]
    if opset < since.SLICE_INPUTS and len({*after[0], *after[1]}) > 1:
        return False
    dropped = sum(item.source.is_only_read_here for item in inputs) + sum(len(item.reversals) for item in outputs)
    return _count_reversals(*after) <= _count_reversals(*before) + dropped


def _count_reversals(inputs: Sequence[bool], outputs: Sequence[bool]) -> int:
    """Return the number of reversals that operators would need that replace a loop with these directions.

    Each argument tells which scan inputs or outputs run backwards.
    """
    return sum(reverse != all(inputs) for reverse in (*inputs, *outputs))


def _edit(loop: ScanView, inputs: Sequence[_ReversedInput], outputs: Sequence[_ReversedOutput], ctx: Context) -> list[ir.Node]:
    """Remove the reversals, change the directions of the Scan, and return the new Scan."""
    build = ctx.builder()
    reads = {id(item.scan): replace(item.scan, outer=item.source.emit(build), reverse=not item.scan.reverse) for item in inputs}
    build.insert_before(loop.node)
    for item in outputs:
        for node in item.reversals:
            source = node.inputs[0]
            assert source is not None
            replace_value(node.outputs[0], source, ctx.names)
            remove_nodes([node])
    stacks = {id(item.output): replace(item.output, reverse=not item.output.reverse) for item in outputs}
    scan_inputs = [reads.get(id(scan), scan) for scan in loop.scan_inputs]
    scan_outputs = [stacks.get(id(output), output) for output in loop.scan_outputs]
    return [rebuild(loop, ctx.names, scan_inputs=scan_inputs, scan_outputs=scan_outputs)]


RULE = Rule("reversals", "scan_form", "loop", check)
