"""Reads Clip (bounds as attributes or inputs) and Dropout (what is left of it in inference)."""

import onnx_ir as ir

from rewrites.graph.values import const_scalar

__all__ = ["Bound", "clip_bounds", "dropout_is_identity"]

Bound = ir.Value | float | None
"""A bound of Clip: an attribute's number, an input, or None where it is absent."""


def clip_bounds(node: ir.Node, opset: int) -> tuple[Bound, Bound]:
    """Return the lower and the upper bound of a Clip."""
    if opset < 11:
        return node.attributes.get_float("min"), node.attributes.get_float("max")
    inputs = [*node.inputs, None, None]
    return inputs[1], inputs[2]


def dropout_is_identity(node: ir.Node, opset: int) -> bool:
    """Whether a Dropout surely passes its data through: it does before opset 12, and where ``training_mode`` is absent or false."""
    if opset < 12 or len(node.inputs) < 3 or node.inputs[2] is None:
        return True
    return const_scalar(node.inputs[2]) is False
