"""Emits the values of one body for all steps, node by node.

``get`` returns the replacement of a body value: a tensor with all steps along axis 0, or one value if it is loop-invariant. Bodies
nested in nodes have their own emission, which asks the outer one for captures.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import onnx_ir as ir

from rewrites.analysis.dependence import not_repeatable
from rewrites.base.not_applicable import NotApplicable
from rewrites.batching.alignment import repeated
from rewrites.batching.call import Call, Operand, Result
from rewrites.batching.table import batch
from rewrites.graph.builder import Builder
from rewrites.graph.dims import refined, without_axis, without_names
from rewrites.graph.walk import node_graphs

__all__ = ["Emission"]


class Emission:
    """The replacements of the values of ``body``; new nodes go to ``build``.

    ``steps``: the length of the extra axis as a one-element int64 tensor. ``around``: returns the replacement of captured values;
    by default they are loop-invariant. ``may_be_empty``: True if there may be no steps.
    """

    def __init__(
        self,
        body: ir.Graph,
        build: Builder,
        steps: ir.Value,
        *,
        around: Callable[[ir.Value], Operand] | None = None,
        may_be_empty: bool = False,
    ) -> None:
        self.body, self.build, self.steps, self.may_be_empty = body, build, steps, may_be_empty
        self.known: dict[ir.Value, Operand] = {}
        self._around = around
        self._inside = {*body.inputs, *(value for node in body for value in node.outputs)}

    def has(self, value: ir.Value) -> bool:
        """Return True if ``get`` knows ``value``."""
        return value in self.known or value not in self._inside

    def get(self, value: ir.Value) -> Operand:
        """Return the operand for ``value``, which must be known or captured."""
        if value in self.known:
            return self.known[value]
        assert value not in self._inside
        return Operand(value, False, value) if self._around is None else self._around(value)

    def add(self, node: ir.Node) -> NotApplicable | None:
        """Emit ``node`` for all steps, and refine its per-step shapes; return the reason if it cannot be emitted."""
        operands = tuple(None if value is None else self.get(value) for value in node.inputs)
        if node.op_type == "Identity" and node.domain == "" and operands[0] is not None:
            self.known[node.outputs[0]] = replace(operands[0], inner=node.outputs[0])
            return None
        if not node_graphs(node) and not any(operand is not None and operand.batched for operand in operands):
            unsafe = not_repeatable(node)
            if unsafe is not None:
                return unsafe
            copies = self.build.like(node, [None if operand is None else operand.value for operand in operands])
            for value, copy in zip(node.outputs, copies, strict=True):
                self.known[value] = Operand(copy, False, value)
                _learn_shape(value, Result(copy, batched=False))
            return None
        results = batch(Call(node, operands, self.build, self.steps, self.may_be_empty, self.get))
        if isinstance(results, NotApplicable):
            return results
        for value, result in zip(node.outputs, results, strict=True):
            self.known[value] = Operand(result.value, result.batched, value)
            _learn_shape(value, result)
        return None

    def add_all(self, nodes: Iterable[ir.Node]) -> NotApplicable | None:
        """Emit ``nodes`` in order; return the reason of the first that cannot be emitted, else None."""
        return next((reason for node in nodes if (reason := self.add(node)) is not None), None)

    def place(self, value: ir.Value, stack: ir.Value, batched: bool = True) -> None:
        """Set ``stack`` as the replacement of ``value``."""
        self.known[value] = Operand(stack, batched, value)

    def full(self, value: ir.Value) -> ir.Value:
        """Return ``value`` for all steps as a tensor; a loop-invariant value is repeated."""
        return repeated(self.build, self.get(value), self.steps)


def _learn_shape(value: ir.Value, result: Result) -> None:
    """Refine the per-step shape of ``value`` by the shape inferred outside, where constants around the body are known."""
    if result.value is not value:
        shape = without_axis(result.value.shape, 0) if result.batched else result.value.shape
        value.shape = refined(without_names(value.shape), without_names(shape), value.shape)
