"""Types and shapes of what some operators of onnxruntime's own give, of which onnx knows nothing."""

import onnx_ir as ir

from rewrites.graph.dims import refined
from rewrites.graph.values import dim_of

__all__ = ["infer_contrib", "is_told_here"]

_LIKE_FIRST = frozenset(
    [
        *("BiasGelu", "FastGelu", "Gelu", "Inverse", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QuickGelu"),
        *("RotaryEmbedding", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    ]
)
"""Operators that give something like their first operand."""


def is_told_here(node: ir.Node) -> bool:
    """Whether ``infer_contrib`` knows what the node gives."""
    return node.domain == "com.microsoft" and (node.op_type in _LIKE_FIRST or node.op_type == "DynamicQuantizeLSTM")


def infer_contrib(node: ir.Node) -> None:
    """Set type and shape of the outputs where they have none."""
    given = node.inputs[0] if node.inputs else None
    if given is None or not node.outputs:
        return
    if node.op_type in _LIKE_FIRST:
        _tell(node.outputs[0], given.type, given.shape)
        return
    hidden, ways = node.attributes.get_int("hidden_size", None), node.attributes.get_string("direction", "forward")
    state = [2 if ways == "bidirectional" else 1, dim_of(given, 1), hidden]
    for position, value in enumerate(node.outputs):
        _tell(value, ir.TensorType(ir.DataType.FLOAT), ir.Shape(state if position else [dim_of(given, 0), *state]))


def _tell(value: ir.Value, kind: ir.TypeProtocol | None, shape: ir.Shape | None) -> None:
    value.type = kind if value.type is None else value.type
    if shape is not None:
        value.shape = refined(value.shape, ir.Shape(shape.dims))
