"""Finds products that read a Transpose by way of a Cast, in a model as a whole: across calls of functions and branches of an If.

    t = my.F (x)   y = MatMul (t, w)   with   F (a) => (b) { b = Transpose <perm = [1, 0, 2]> (a) }

onnxruntime inlines functions, and branches whose condition it knows, before it fuses the Transpose into the product.

Works round ORT-CAST-AFTER-TRANSPOSE and ORT-HALVES-AFTER-TRANSPOSE.
"""

from collections.abc import Iterator
from itertools import chain

import onnx_ir as ir

from rewrites.graph.walk import all_nodes, inner_values, node_graphs
from rewrites.tidy.moved_operands import BETWEEN, CASTS, is_product

__all__ = ["FUSED_PART", "functions_with_cast_transposes", "has_cast_transpose"]

FUSED_PART = "holds a part of a product that onnxruntime may crash on"
"""Why such a function is inlined, after "which"."""

_HALF = ir.DataType.FLOAT16


def has_cast_transpose(model: ir.Model) -> bool:
    """Return True if a product may read a Transpose by way of a Cast, its own or one that onnxruntime inserts."""
    return any(_Paths(model, enters_loops=False).owners_by_product())


def functions_with_cast_transposes(model: ir.Model) -> list[ir.Function]:
    """Return the functions that a path from a product through a Cast to a Transpose may cross.

    A path may also lead into a loop and out of it, because a rewrite may take the product or the Transpose out.
    """
    owners = set(chain.from_iterable(_Paths(model, enters_loops=True).owners_by_product())) if model.functions else set()
    return [function for function in model.functions.values() if function in owners]


class _Paths:
    """The paths from products up to Transposes, which take no notice of who calls a function."""

    def __init__(self, model: ir.Model, *, enters_loops: bool) -> None:
        self._functions = model.functions
        self._enters_loops = enters_loops
        scopes: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
        self._owners = {node: scope for scope in scopes for node in all_nodes(scope)}
        self._holds_halves = _holds_halves(model, self._owners)
        self._operands: dict[ir.Value, list[ir.Value | None]] = {}
        for node in self._owners:
            callee = self._functions.get(node.op_identifier())
            for formal, operand in zip(callee.inputs, node.inputs, strict=False) if callee is not None else ():
                self._operands.setdefault(formal, []).append(operand)
            for formal in (value for graph in self._entered(node) for value in graph.inputs):
                self._operands.setdefault(formal, []).extend(node.inputs)

    def owners_by_product(self) -> Iterator[set[ir.Graph | ir.Function]]:
        """Yield the scopes of the nodes that a product's paths cross, for each product that reaches a Transpose."""
        for node, owner in self._owners.items():
            owners = self._crossed(node) if is_product(node) else set()
            if owners:
                yield owners | {owner}

    def _crossed(self, product: ir.Node) -> set[ir.Graph | ir.Function]:
        """Return the scopes on the paths from ``product``; none if no path has both a Cast and a Transpose above it."""
        owners, reaches = set[ir.Graph | ir.Function](), False
        waiting, seen = [(value, self._is_cast_by_onnxruntime(product)) for value in product.inputs], set[tuple[ir.Value, bool]]()
        while waiting:
            value, is_cast = waiting.pop()
            if value is None or (value, is_cast) in seen:
                continue
            seen.add((value, is_cast))
            node = value.producer()
            if node is not None:
                owners.add(self._owners[node])
                reaches = reaches or (is_cast and node.op_type == "Transpose")
                is_cast = is_cast or node.op_type in CASTS
            waiting += [(source, is_cast) for source in self._sources(value, node)]
        return owners if reaches else set()

    def _sources(self, value: ir.Value, node: ir.Node | None) -> list[ir.Value | None]:
        if node is None:
            return self._operands.get(value, [])
        callee = self._functions.get(node.op_identifier())
        if callee is not None:
            return list(callee.outputs[value.index() or 0 : (value.index() or 0) + 1])
        if node.domain == "" and node.op_type in BETWEEN:
            return list(node.inputs)
        return [output for graph in self._entered(node) for output in graph.outputs]

    def _entered(self, node: ir.Node) -> list[ir.Graph]:
        return node_graphs(node) if self._enters_loops or node.op_type == "If" else []

    def _is_cast_by_onnxruntime(self, product: ir.Node) -> bool:
        dtypes = {value.dtype for value in (*product.inputs, *product.outputs) if value is not None} - {None}
        return _HALF in dtypes if dtypes else self._holds_halves


def _holds_halves(model: ir.Model, nodes: dict[ir.Node, ir.Graph | ir.Function]) -> bool:
    graph = model.graph
    if any(value.dtype == _HALF for value in (*graph.inputs, *graph.initializers.values(), *inner_values(graph))):
        return True
    attributes = (attribute for node in nodes for attribute in node.attributes.values() if not attribute.is_ref())
    return any(
        attribute.as_tensor().dtype == _HALF
        if attribute.type == ir.AttributeType.TENSOR
        else attribute.name == "to" and attribute.value == _HALF.value
        for attribute in attributes
    )
