"""Products of dequantized numbers, which onnxruntime computes in integers where what dequantizes stands beside them.

    y = MatMul(DequantizeLinear(q, s, z), DequantizeLinear(W, t, u))

Without one of the two, or with it in another graph, the weights are float32: four times their bytes, and another kernel, whose sums
round differently, which quantizing behind it may make a whole step of.
"""

import onnx_ir as ir

__all__ = ["dequantizes_operand", "quantized_products"]

_PRODUCTS = frozenset({"Conv", "Gemm", "MatMul"})


def dequantizes_operand(node: ir.Node) -> bool:
    """Whether ``node`` dequantizes an operand of such a product."""
    return bool(quantized_products(node))


def quantized_products(node: ir.Node) -> list[ir.Node]:
    """Return the products that read what ``node`` dequantizes, in its graph."""
    if not _dequantizes(node, node.graph):
        return []
    return [
        user
        for user in {user: None for user, _ in node.outputs[0].uses()}
        if user.op_type in _PRODUCTS
        and user.domain == ""
        and user.graph is node.graph
        and all(value is not None and _dequantizes(value.producer(), user.graph) for value in user.inputs[:2])
    ]


def _dequantizes(node: ir.Node | None, graph: ir.Graph | ir.Function | None) -> bool:
    return node is not None and node.op_type == "DequantizeLinear" and node.domain == "" and node.graph is graph
