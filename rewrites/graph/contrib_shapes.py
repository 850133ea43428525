"""Types and shapes of onnxruntime's own operators that give something like their first operand, which onnx knows nothing of."""

import onnx_ir as ir

__all__ = ["infer_contrib", "is_like_first"]

_LIKE_FIRST = frozenset(
    [
        *("BiasGelu", "FastGelu", "Gelu", "Inverse", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QuickGelu"),
        *("RotaryEmbedding", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    ]
)


def is_like_first(node: ir.Node) -> bool:
    """Whether the first result has the type and shape of the first operand."""
    return node.domain == "com.microsoft" and node.op_type in _LIKE_FIRST


def infer_contrib(node: ir.Node) -> None:
    """Set type and shape of such a node's first result, where they are not known."""
    given = node.inputs[0] if node.inputs else None
    if given is None or not node.outputs:
        return
    result = node.outputs[0]
    result.type = given.type if result.type is None else result.type
    if result.shape is None and given.shape is not None:
        result.shape = ir.Shape(given.shape.dims)
