"""Body values for all steps at once.

A stack holds a body value of every step along axis 0, in one order for the whole loop: the order of the steps, or the opposite
order where every scan input runs backwards (then nothing has to be turned round).
"""

import onnx_ir as ir

from rewrites.batching import Call, Operand, batch
from rewrites.batching.alignment import expanded
from rewrites.builder import Builder
from rewrites.loops import ScanView, State
from rewrites.moving import node_graphs
from rewrites.not_applicable import NotApplicable
from rewrites.spelling import concat, shape_of, slice_axis, squeeze, unsqueeze

__all__ = ["Stacks"]

_END = 2**63 - 1


class Stacks:
    """The stacks of one loop's body values, filled node by node; new nodes go to ``build``.

    ``backwards``: index 0 holds the last step.
    """

    def __init__(self, loop: ScanView, build: Builder) -> None:
        self.loop = loop
        self.build = build
        self.backwards = all(scan.reverse for scan in loop.scan_inputs)
        self.steps = shape_of(build, loop.scan_inputs[0].outer, 0)
        self.known: dict[ir.Value, Operand] = {}
        self._scans = {scan.inner: scan for scan in loop.scan_inputs}
        self._inside = {*loop.body.inputs, *(value for node in loop.body for value in node.outputs)}

    def has(self, value: ir.Value) -> bool:
        """Whether ``value`` can be read for all steps: a stack, a scan input, or the same in every step."""
        return value in self.known or value in self._scans or value not in self._inside

    def get(self, value: ir.Value) -> Operand:
        """Give the operand for ``value``."""
        if value not in self._inside:
            return Operand(value, False, value)
        if value not in self.known:
            scan = self._scans[value]
            self.known[value] = Operand(self.ordered(scan.outer, scan.reverse), True, value)
        return self.known[value]

    def add(self, node: ir.Node) -> NotApplicable | None:
        """Emit ``node`` for all steps; gives the reason where it cannot be."""
        if node_graphs(node):
            return NotApplicable("CONTROL-FLOW", f"{node.op_type} '{node.name}' holds graphs of its own")
        operands = tuple(None if value is None else self.get(value) for value in node.inputs)
        if not any(operand is not None and operand.batched for operand in operands):
            copies = self.build.like(node, [None if operand is None else operand.value for operand in operands])
            for value, copy in zip(node.outputs, copies, strict=True):
                self.known[value] = Operand(copy, False, value)
            return None
        results = batch(Call(node, operands, self.build, self.steps))
        if isinstance(results, NotApplicable):
            return results
        for value, result in zip(node.outputs, results, strict=True):
            self.known[value] = Operand(result.value, result.batched, value)
        return None

    def place(self, value: ir.Value, stack: ir.Value) -> None:
        """Say that ``stack`` holds ``value`` for all steps."""
        self.known[value] = Operand(stack, True, value)

    def ordered(self, value: ir.Value, backwards: bool) -> ir.Value:
        """Give a tensor whose rows are in ``backwards`` or forward order in the order of these stacks (and the other way round)."""
        return value if backwards == self.backwards else slice_axis(self.build, value, 0, -1, -_END, -1)

    def full(self, value: ir.Value) -> ir.Value:
        """Give ``value`` for all steps as a tensor, repeated where it is the same in every step."""
        return expanded(Call(self.loop.node, (self.get(value),), self.build, self.steps), 0)

    def last(self, value: ir.Value) -> ir.Value:
        """Give ``value`` of the last step."""
        operand = self.get(value)
        if not operand.batched:
            return operand.value
        start, end = (0, 1) if self.backwards else (-1, _END)
        return squeeze(self.build, slice_axis(self.build, operand.value, 0, start, end), [0])

    def delayed(self, state: State) -> ir.Value:
        """Give the stack of a state's value at the start of each step, from the stack of its ``next``."""
        stack, first = self.full(state.next), unsqueeze(self.build, state.initial, [0])
        if self.backwards:
            return concat(self.build, [slice_axis(self.build, stack, 0, 1, _END), first], 0)
        return concat(self.build, [first, slice_axis(self.build, stack, 0, 0, -1)], 0)
