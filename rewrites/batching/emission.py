"""The values of one body for all steps, made node by node.

Within the body of a loop, ``get`` tells what stands for a value: a tensor that holds it for every step along axis 0, or one value
where it is loop-invariant. Bodies nested in nodes have an emission of their own, which asks the one around it for captures.
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
    """What stands for each value of ``body``; new nodes go to ``build``.

    ``steps``: the length of the extra axis as a one-element int64 tensor. ``around``: gives what stands for captured values; by
    default they are loop-invariant. ``may_be_empty``: whether there may be no steps at all.
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
        """Return True if ``get`` can answer."""
        return value in self.known or value not in self._inside

    def get(self, value: ir.Value) -> Operand:
        """Return the operand for ``value``, which must be known or captured."""
        if value in self.known:
            return self.known[value]
        assert value not in self._inside
        return Operand(value, False, value) if self._around is None else self._around(value)

    def add(self, node: ir.Node) -> NotApplicable | None:
        """Emit ``node`` for all steps, and note what that tells of its shapes in one step; return the reason if it cannot be
        emitted.
        """
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
        """Emit ``nodes`` in order, up to the first that cannot be."""
        return next((reason for node in nodes if (reason := self.add(node)) is not None), None)

    def place(self, value: ir.Value, stack: ir.Value, batched: bool = True) -> None:
        """Say that ``stack`` stands for ``value``."""
        self.known[value] = Operand(stack, batched, value)

    def full(self, value: ir.Value) -> ir.Value:
        """Return ``value`` for all steps as a tensor, repeated where it is loop-invariant."""
        return repeated(self.build, self.get(value), self.steps)


def _learn_shape(value: ir.Value, result: Result) -> None:
    """Note on ``value`` what was inferred outside, where constants from around the body are seen, of its shape in one step."""
    if result.value is not value:
        shape = without_axis(result.value.shape, 0) if result.batched else result.value.shape
        value.shape = refined(without_names(value.shape), without_names(shape), value.shape)
