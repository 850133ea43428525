"""Emits the nodes of one body for all steps at once, node by node.

Each value of the body has a replacement: a value with the steps as axis 0, or one value for all steps if it is loop-invariant. A
nested body has its own ``Emission``, which gets the replacements of captured values from the outer ``Emission``.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import onnx_ir as ir

from rewrites.analysis.dependence import not_repeatable
from rewrites.base.not_applicable import NotApplicable
from rewrites.batching.alignment import stacked_value
from rewrites.batching.call import Call, Operand, Result
from rewrites.batching.table import batch
from rewrites.graph.builder import Builder
from rewrites.graph.dims import refined, without_axis, without_names
from rewrites.graph.walk import node_graphs

__all__ = ["Emission"]


class Emission:
    """Emits nodes of ``body`` for all steps, and holds the replacements of its values.

    The replacement of a value holds the value for all steps: stacked along axis 0, or once if it is loop-invariant.

    Args:
        body: The body.
        build: Collects the new nodes.
        steps: The number of steps, as a one-element int64 tensor.
        captured: Returns the replacement of a captured value. By default, captured values are loop-invariant.
        may_be_empty: True if the number of steps may be 0.
    """

    def __init__(
        self,
        body: ir.Graph,
        build: Builder,
        steps: ir.Value,
        *,
        captured: Callable[[ir.Value], Operand] | None = None,
        may_be_empty: bool = False,
    ) -> None:
        self.body, self.build, self.steps, self.may_be_empty = body, build, steps, may_be_empty
        self.replacements: dict[ir.Value, Operand] = {}
        self._captured = captured
        self._inside = {*body.inputs, *(value for node in body for value in node.outputs)}

    def has(self, value: ir.Value) -> bool:
        """Return True if ``value`` has a replacement: its node was emitted, or it comes from outside the body."""
        return value in self.replacements or value not in self._inside

    def get(self, value: ir.Value) -> Operand:
        """Return the replacement of ``value``, which must have one (see ``has``)."""
        if value in self.replacements:
            return self.replacements[value]
        assert value not in self._inside
        return Operand(value, False, value) if self._captured is None else self._captured(value)

    def add(self, node: ir.Node) -> NotApplicable | None:
        """Emit ``node`` for all steps, and refine the per-step shapes of its outputs.

        Return a reason if the node cannot be emitted, else None.
        """
        operands = tuple(None if value is None else self.get(value) for value in node.inputs)
        if node.op_type == "Identity" and node.domain == "" and operands[0] is not None:
            self.replacements[node.outputs[0]] = replace(operands[0], inner=node.outputs[0])
            return None
        if not node_graphs(node) and not any(operand is not None and operand.batched for operand in operands):
            unsafe = not_repeatable(node)
            if unsafe is not None:
                return unsafe
            copies = self.build.like(node, [None if operand is None else operand.value for operand in operands])
            for value, copy in zip(node.outputs, copies, strict=True):
                self.replacements[value] = Operand(copy, False, value)
                _learn_shape(value, Result(copy, batched=False))
            return None
        results = batch(Call(node, operands, self.build, self.steps, self.may_be_empty, self.get))
        if isinstance(results, NotApplicable):
            return results
        for value, result in zip(node.outputs, results, strict=True):
            self.replacements[value] = Operand(result.value, result.batched, value)
            _learn_shape(value, result)
        return None

    def add_all(self, nodes: Iterable[ir.Node]) -> NotApplicable | None:
        """Emit ``nodes`` in order. Stop at the first node that cannot be emitted.

        Return the reason why it cannot, or None if all nodes are emitted.
        """
        return next((reason for node in nodes if (reason := self.add(node)) is not None), None)

    def set(self, value: ir.Value, stack: ir.Value, batched: bool = True) -> None:
        """Use ``stack`` as the replacement of ``value``.

        ``batched``: True if ``stack`` has the steps as axis 0. False if it is one value for all steps.
        """
        self.replacements[value] = Operand(stack, batched, value)

    def stack_of(self, value: ir.Value) -> ir.Value:
        """Return the replacement of ``value`` with the steps as axis 0.

        A loop-invariant replacement is repeated for every step.
        """
        return stacked_value(self.build, self.get(value), self.steps)


def _learn_shape(value: ir.Value, result: Result) -> None:
    """Refine the per-step shape of ``value`` by the shape of its replacement ``result``.

    The shape of the replacement may be more exact, because onnx could use constants outside the body to infer it.
    """
    if result.value is not value:
        shape = without_axis(result.value.shape, 0) if result.batched else result.value.shape
        value.shape = refined(without_names(value.shape), without_names(shape), value.shape)
