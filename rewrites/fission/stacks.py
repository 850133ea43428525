"""Stacks: the values that a body value of a loop has in all steps, as one tensor.

The steps are axis 0 of a stack. All stacks of a loop have the same order. Usually, the first step comes first. If every scan input
runs backwards, the last step comes first, because no tensor must then be reversed.

Works around ORT-PRODUCT-OF-NOTHING.
"""

import onnx_ir as ir

from rewrites.base import since
from rewrites.batching import Emission, Operand
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.marks import BLOCKS, OVER_BLOCKS
from rewrites.loops import ScanInput, ScanOutput, ScanView, State
from rewrites.ops.versions import concat, shape_of, slice_axis, squeeze, unsqueeze
from rewrites.rule import NOTHING_HERE, NotApplicable

__all__ = ["Stacks", "stacking_obstacle"]

_END = 2**63 - 1


class Stacks(Emission):
    """Emits nodes into ``build`` that compute the stacks of body values of ``loop``.

    ``backwards``: True if index 0 of each stack holds the last step.
    """

    def __init__(self, loop: ScanView, build: Builder) -> None:
        super().__init__(loop.body, build, shape_of(build, loop.scan_inputs[0].outer, 0))
        self.loop = loop
        self.backwards = all(scan.reverse for scan in loop.scan_inputs)
        self._scans = {scan.inner: scan for scan in loop.scan_inputs}

    def has(self, value: ir.Value) -> bool:
        """Return True if ``value`` has a stack, is a scan input, or is the same in all steps."""
        return value in self._scans or super().has(value)

    def get(self, value: ir.Value) -> Operand:
        """Return the stack of ``value``, or the value itself if it is the same in all steps."""
        if value in self._scans and value not in self.replacements:
            scan = self._scans[value]
            self.replacements[value] = Operand(self.ordered(scan.outer, scan.reverse), True, value)
        return super().get(value)

    def sources(self) -> list[ir.Value]:
        """Return the body inputs that are scan inputs."""
        return list(self._scans)

    def ordered(self, value: ir.Value, backwards: bool) -> ir.Value:
        """Return the tensor ``value`` of all steps in the order of the stacks, reversed if necessary.

        ``backwards``: True if index 0 of ``value`` holds the last step.
        """
        return value if backwards == self.backwards else slice_axis(self.build, value, 0, -1, -_END, -1)

    def last(self, value: ir.Value) -> ir.Value:
        """Return the value of the body value ``value`` in the last step."""
        operand = self.get(value)
        if not operand.batched:
            return operand.value
        start, end = (0, 1) if self.backwards else (-1, _END)
        return squeeze(self.build, slice_axis(self.build, operand.value, 0, start, end), [0])

    def delayed(self, state: State) -> ir.Value:
        """Return the stack of ``state.inner``: the initial value, then all next values but the last."""
        stack, first = self.stack_of(state.next), unsqueeze(self.build, state.initial, [0])
        if self.backwards:
            return concat(self.build, [slice_axis(self.build, stack, 0, 1, _END), first], 0)
        return concat(self.build, [first, slice_axis(self.build, stack, 0, 0, -1)], 0)


def stacking_obstacle(loop: ScanView, ctx: Context) -> NotApplicable | None:
    """Return a reason if no stacks can be computed for ``loop``, for example an opset-8 Scan; else None."""
    if loop.batched:
        return NotApplicable("SCAN-8", "an opset-8 Scan runs its body row by row; lift the model to opset 9 or later first")
    parts: list[ScanInput | ScanOutput] = [*loop.scan_inputs, *loop.scan_outputs]
    if any(part.axis != 0 for part in parts):
        return NotApplicable("SCAN-AXES", "a scanned axis is not 0", silent=True)
    if ctx.opset < since.SLICE_INPUTS and len({part.reverse for part in parts}) > 1:
        return NotApplicable("SCAN-DIRECTIONS", f"directions differ, and opset {ctx.opset} cannot reverse a tensor")
    if BLOCKS.on(loop.node) or (loop.body.name or "").startswith(OVER_BLOCKS):
        return NotApplicable("SCAN-BLOCKS", "each step already works on a block of the original steps")
    if any(state.inner.shape is not None and 0 in state.inner.shape.dims for state in loop.states):
        return NOTHING_HERE  # onnxruntime's own fusion of MatMul and Add fails on empty stacks
    return None
