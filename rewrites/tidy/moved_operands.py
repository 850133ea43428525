"""Finds products that read a Transpose, directly or through nodes that onnxruntime drops or fuses.

A path leads from the product up to the Transpose, that is, towards the inputs of the model. It may lead through calls of functions
and branches of an If, because onnxruntime may inline them before it fuses the Transpose:

    t = my.F (x)   y = MatMul (t, w)   with   F (a) => (b) { b = Transpose <perm = [1, 0, 2]> (a) }

Works around ORT-CAST-AFTER-TRANSPOSE and ORT-HALVES-AFTER-TRANSPOSE.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import onnx_ir as ir

from rewrites.graph.values import const_array, producer_of, rank_of
from rewrites.graph.walk import all_nodes, inner_values, node_graphs

__all__ = [
    "FUSED_PART",
    "Link",
    "functions_with_cast_transposes",
    "has_cast_transpose",
    "is_product",
    "link_above",
    "moves_axes",
    "transposes_axes",
]

_MOVEMENT = frozenset({"Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
_ARITHMETIC = frozenset({"Add", "Div", "Mul", "Sub"})
_CASTS = frozenset({"Cast", "CastLike"})
"""Operators that cast. onnxruntime rewrites a CastLike as a Cast."""
_BETWEEN = _MOVEMENT | _ARITHMETIC | _CASTS | {"Dropout"}
"""Operators that a path from the Transpose to the product may have."""
_PRODUCTS = frozenset({("", "MatMul"), ("com.microsoft", "FusedMatMul")})
_TRAINS = 3
"""A Dropout with this many inputs may be in training mode."""
FUSED_PART = "holds a part of a product that onnxruntime may crash on"
"""The reason for inlining a function, as the end of a message "the function ..., which"."""
_HALF = ir.DataType.FLOAT16


@dataclass(frozen=True)
class Link:
    """A node on a path from a product up to a Transpose.

    The path continues at input ``index`` of the node.
    """

    node: ir.Node
    index: int

    @property
    def moves(self) -> bool:
        """Return True if the node only moves numbers."""
        return self.node.op_type in _MOVEMENT or self.node.op_type == "Dropout"

    @property
    def is_cast(self) -> bool:
        """Return True if the node is a Cast or CastLike."""
        return self.node.op_type in _CASTS

    @property
    def source(self) -> ir.Value | None:
        """Return input ``index`` of the node, the next value on the path."""
        return self.node.inputs[self.index]


class _Paths:
    """Follows paths from products up to Transposes.

    At an input of a function, the path continues at the operands of all calls of this function.
    """

    def __init__(self, model: ir.Model, *, enters_loops: bool) -> None:
        self._functions = model.functions
        self._enters_loops = enters_loops
        scopes: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
        self._owners = {node: scope for scope in scopes for node in all_nodes(scope)}
        self._holds_halves = _may_have_half_products(model, self._owners)
        self._operands: dict[ir.Value, list[ir.Value | None]] = {}
        for node in self._owners:
            callee = self._functions.get(node.op_identifier())
            for formal, operand in zip(callee.inputs, node.inputs, strict=False) if callee is not None else ():
                self._operands.setdefault(formal, []).append(operand)
            for formal in (value for graph in self._entered_graphs(node) for value in graph.inputs):
                self._operands.setdefault(formal, []).extend(node.inputs)

    def owners_by_product(self) -> Iterator[set[ir.Graph | ir.Function]]:
        """Yield a set of owners for each product that reads a Transpose through a Cast.

        The owner of a node is the main graph or the function that contains the node. The set holds the owner of the product, and
        the owners of all nodes on paths up from the product.
        """
        for node, owner in self._owners.items():
            owners = self._owners_on_paths(node) if is_product(node) else set()
            if owners:
                yield owners | {owner}

    def _owners_on_paths(self, product: ir.Node) -> set[ir.Graph | ir.Function]:
        """Return the owners of all nodes on paths up from ``product``: the main graph, functions, or both.

        If no path leads through a Cast to a Transpose, return an empty set.
        """
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
                is_cast = is_cast or node.op_type in _CASTS
            waiting += [(source, is_cast) for source in self._sources(value, node)]
        return owners if reaches else set()

    def _sources(self, value: ir.Value, node: ir.Node | None) -> list[ir.Value | None]:
        if node is None:
            return self._operands.get(value, [])
        callee = self._functions.get(node.op_identifier())
        if callee is not None:
            return list(callee.outputs[value.index() or 0 : (value.index() or 0) + 1])
        if node.domain == "" and node.op_type in _BETWEEN:
            return list(node.inputs)
        return [output for graph in self._entered_graphs(node) for output in graph.outputs]

    def _entered_graphs(self, node: ir.Node) -> list[ir.Graph]:
        return node_graphs(node) if self._enters_loops or node.op_type == "If" else []

    def _is_cast_by_onnxruntime(self, product: ir.Node) -> bool:
        dtypes = {value.dtype for value in (*product.inputs, *product.outputs) if value is not None} - {None}
        return _HALF in dtypes if dtypes else self._holds_halves


def link_above(value: ir.Value | None) -> Link | None:
    """Return the Link for the node that computes ``value``, or None if no path can lead through this node."""
    node = producer_of(value)
    if node is None or value is not node.outputs[0]:
        return None
    if node.op_type in _MOVEMENT | _CASTS or (node.op_type == "Dropout" and len(node.inputs) < _TRAINS):
        return Link(node, 0)
    if node.op_type in _ARITHMETIC:
        return next((Link(node, index) for index in (0, 1) if _is_number(node.inputs[1 - index])), None)
    return None


def _is_number(value: ir.Value | None) -> bool:
    array = const_array(value)
    return array is not None and array.size == 1 and array.ndim <= 1


def is_product(node: ir.Node) -> bool:
    """Return True if ``node`` is a product into which onnxruntime fuses a Transpose."""
    return (node.domain, node.op_type) in _PRODUCTS


def moves_axes(value: ir.Value, graph: ir.Graph | ir.Function | None) -> bool:
    """Return True if a path of nodes in ``graph`` leads from ``value`` up to a Transpose."""
    link = link_above(value)
    while link is not None and link.node.graph is graph:
        if transposes_axes(link):
            return True
        link = link_above(link.source)
    return False


def transposes_axes(link: Link) -> bool:
    """Return True if the node of ``link`` is a Transpose of more than two axes or of unknown rank."""
    return link.node.op_type == "Transpose" and (rank_of(link.node.outputs[0]) or 3) > 2


def has_cast_transpose(model: ir.Model) -> bool:
    """Return True if a path leads from a product through a Cast up to a Transpose.

    Casts that onnxruntime will insert count too.
    """
    return any(_Paths(model, enters_loops=False).owners_by_product())


def functions_with_cast_transposes(model: ir.Model) -> list[ir.Function]:
    """Return the functions that contain a node of a path from a product through a Cast up to a Transpose.

    A path may enter or leave a loop, because a rewrite may later move the product or the Transpose out of the loop.
    """
    owners = set(chain.from_iterable(_Paths(model, enters_loops=True).owners_by_product())) if model.functions else set()
    return [function for function in model.functions.values() if function in owners]


def _may_have_half_products(model: ir.Model, nodes: dict[ir.Node, ir.Graph | ir.Function]) -> bool:
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
