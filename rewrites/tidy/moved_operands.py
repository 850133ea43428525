"""Operands of a product that a Transpose moves, seen through what onnxruntime may drop or fuse.

Works round ORT-CAST-AFTER-TRANSPOSE.
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.graph.values import const_array, rank_of

__all__ = ["BETWEEN", "CASTS", "Link", "is_product", "link_above", "moves_axes", "transposes_axes"]

_MOVEMENT = frozenset({"Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})

_ARITHMETIC = frozenset({"Add", "Div", "Mul", "Sub"})


CASTS = frozenset({"Cast", "CastLike"})
"""What casts; onnxruntime writes a CastLike as a Cast."""

BETWEEN = _MOVEMENT | _ARITHMETIC | CASTS | {"Dropout"}
"""What may stand between the Transpose and the product."""

_PRODUCTS = frozenset({("", "MatMul"), ("com.microsoft", "FusedMatMul")})

_TRAINS = 3
"""How many inputs a Dropout has that is told whether to train."""


@dataclass(frozen=True)
class Link:
    """A node, and which of its inputs it moves, or works on number by number."""

    node: ir.Node
    place: int

    @property
    def moves(self) -> bool:
        """Whether it changes no number."""
        return self.node.op_type in _MOVEMENT or self.node.op_type == "Dropout"

    @property
    def is_cast(self) -> bool:
        """Whether it casts."""
        return self.node.op_type in CASTS

    @property
    def source(self) -> ir.Value | None:
        """What it reads."""
        return self.node.inputs[self.place]


def link_above(value: ir.Value | None) -> Link | None:
    """Return the node that gives ``value``, where onnxruntime may drop or fuse it, or where it casts or transposes."""
    node = None if value is None else value.producer()
    if node is None or node.domain != "" or value is not node.outputs[0]:
        return None
    if node.op_type in _MOVEMENT | CASTS or (node.op_type == "Dropout" and len(node.inputs) < _TRAINS):
        return Link(node, 0)
    if node.op_type in _ARITHMETIC:
        return next((Link(node, place) for place in (0, 1) if _is_number(node.inputs[1 - place])), None)
    return None


def is_product(node: ir.Node) -> bool:
    """Return True if ``node`` is a product into which onnxruntime fuses a Transpose."""
    return (node.domain, node.op_type) in _PRODUCTS


def _is_number(value: ir.Value | None) -> bool:
    array = const_array(value)
    return array is not None and array.size == 1 and array.ndim <= 1


def moves_axes(value: ir.Value, graph: ir.Graph | ir.Function | None) -> bool:
    """Whether ``value`` is, but for what onnxruntime may drop or fuse, the result of a Transpose of ``graph``."""
    link = link_above(value)
    while link is not None and link.node.graph is graph:
        if transposes_axes(link):
            return True
        link = link_above(link.source)
    return False


def transposes_axes(link: Link) -> bool:
    """Whether the node of ``link`` transposes more than two axes, or may."""
    return link.node.op_type == "Transpose" and (rank_of(link.node.outputs[0]) or 3) > 2
