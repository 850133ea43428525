"""What each value of a model is computed from, through the bodies of control flow: one step at a time.

    y, z = Scan (h, x)  with a body (s, e) => (n, o)      y ◄─ n, h      s ◄─ h, n      e ◄─ x      z ◄─ o

So two outputs of one loop depend on the same only where their bodies do, at the first step or at a later one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.base.errors import MalformedLoop
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops.view import captured_values, is_loop, view

__all__ = ["Above", "Dependence"]


@dataclass(frozen=True)
class Above:
    """The values that another is computed from, and the types of values between that are not followed one by one."""

    values: tuple[ir.Value, ...] = ()
    types: frozenset[int] = frozenset()


class Dependence:
    """The values of ``model``, whose bodies are entered as their outputs are asked for."""

    def __init__(self, model: ir.Model):
        self._model = model
        self._opset = model.opset_imports.get("", 1)
        self._outputs: dict[ir.Value, list[ir.Value]] = {}
        self._inputs: dict[ir.Value, list[ir.Value]] = {}
        self._entered: set[ir.Node] = set()

    def of(self, value: ir.Value) -> Above:
        """Return what ``value`` is computed from: nothing where it is given, or in a body that was not entered."""
        node = value.producer()
        if node is None:
            return Above(tuple(self._inputs.get(value, ())))
        if node not in self._entered:
            self._entered.add(node)
            self._enter(node)
        if value in self._outputs:
            return Above(tuple(self._outputs[value]))
        graphs = node_graphs(node)
        read = [each for each in (*node.inputs, *(one for graph in graphs for one in captured_values(graph))) if each is not None]
        return Above(tuple(read), frozenset(self._types_within(node)))

    def _enter(self, node: ir.Node) -> None:
        if node.op_type == "If" and node.domain == "":
            branches = [graph.outputs for graph in node_graphs(node)]
            for outer, *inner in zip(node.outputs, *branches, strict=False):
                self._outputs[outer] = [*inner, *(each for each in node.inputs if each is not None)]
        if not is_loop(node):
            return
        try:
            loop = view(node, self._opset)
        except MalformedLoop:
            return
        for state in loop.states:
            self._inputs[state.inner] = [state.initial, state.next]
            if state.final is not None:
                self._outputs[state.final] = [state.initial, state.next]
        for scanned in loop.scan_inputs:
            self._inputs[scanned.inner] = [scanned.outer]
        for stacked in loop.scan_outputs:
            if stacked.outer is not None:
                self._outputs[stacked.outer] = [stacked.inner]

    def _types_within(self, node: ir.Node) -> Iterator[int]:
        """Return the types of all that a node computes out of sight: in the bodies of other operators, or in a function."""
        nodes = [each for graph in node_graphs(node) for each in all_nodes(graph)]
        called = [function for each in (node, *nodes) if (function := self._function(each)) is not None]
        seen: set[ir.Function] = set()
        while called:
            function = called.pop()
            if function not in seen:
                seen.add(function)
                inside = list(all_nodes(function))
                nodes += inside
                called += [each for each in map(self._function, inside) if each is not None]
        for each in nodes:
            values = (value for value in (*each.inputs, *each.outputs) if value is not None)
            yield from (int(value.dtype) for value in values if value.dtype is not None)
            if each.op_type == "Cast" and (target := each.attributes.get_int("to", None)) is not None:
                yield target

    def _function(self, node: ir.Node) -> ir.Function | None:
        return self._model.functions.get(node.op_identifier())
