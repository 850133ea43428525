"""Body values for all steps at once.

A stack holds a body value of every step along axis 0, in one order for the whole loop: the order of the steps, or the opposite
order where every scan input runs backwards (then nothing has to be reversed).
"""

import onnx_ir as ir

from rewrites.batching import Emission, Operand
from rewrites.graph.builder import Builder
from rewrites.loops import ScanView, State
from rewrites.ops.versions import concat, shape_of, slice_axis, squeeze, unsqueeze

__all__ = ["Stacks"]

_END = 2**63 - 1


class Stacks(Emission):
    """The stacks of one loop's body values, filled node by node; new nodes go to ``build``.

    ``loop``: the loop. ``backwards``: index 0 holds the last step.
    """

    def __init__(self, loop: ScanView, build: Builder) -> None:
        super().__init__(loop.body, build, shape_of(build, loop.scan_inputs[0].outer, 0))
        self.loop = loop
        self.backwards = all(scan.reverse for scan in loop.scan_inputs)
        self._scans = {scan.inner: scan for scan in loop.scan_inputs}

    def has(self, value: ir.Value) -> bool:
        """Whether ``value`` can be read for all steps: a stack, a scan input, or loop-invariant."""
        return value in self._scans or super().has(value)

    def get(self, value: ir.Value) -> Operand:
        """Return the operand for ``value``."""
        if value in self._scans and value not in self.known:
            scan = self._scans[value]
            self.known[value] = Operand(self.ordered(scan.outer, scan.reverse), True, value)
        return super().get(value)

    def sources(self) -> list[ir.Value]:
        """Return the scan inputs, as the body sees them."""
        return list(self._scans)

    def ordered(self, value: ir.Value, backwards: bool) -> ir.Value:
        """Return a tensor with rows in ``backwards`` or forward order in the order of these stacks (and the other way round)."""
        return value if backwards == self.backwards else slice_axis(self.build, value, 0, -1, -_END, -1)

    def last(self, value: ir.Value) -> ir.Value:
        """Return ``value`` of the last step."""
        operand = self.get(value)
        if not operand.batched:
            return operand.value
        start, end = (0, 1) if self.backwards else (-1, _END)
        return squeeze(self.build, slice_axis(self.build, operand.value, 0, start, end), [0])

    def delayed(self, state: State) -> ir.Value:
        """Return the stack of a state's value at the start of each step, from the stack of its ``next``."""
        stack, first = self.full(state.next), unsqueeze(self.build, state.initial, [0])
        if self.backwards:
            return concat(self.build, [slice_axis(self.build, stack, 0, 1, _END), first], 0)
        return concat(self.build, [first, slice_axis(self.build, stack, 0, 0, -1)], 0)
