"""Single nodes that onnxruntime may work in for long, where no clock stops it.

MaxPool <kernel_shape = [1500, 1500]> (x [1, 1, 3000, 3000])      5 * 10^12 comparisons
MatMul (x [20000, 20000], x)                                      8 * 10^12 products

Works round ORT-UNSTOPPABLE-NODE.
"""

import math
from collections.abc import Sequence

import onnx_ir as ir

from ortscan.running.analysis import Analysis

__all__ = ["works_long"]

_MOST = 4e9
"""Products and the like in one node: some seconds of one thread."""

_FREE = 16
"""What a free dimension counts as: most made-up sizes are smaller."""

_PRODUCTS = frozenset(["MatMul", "MatMulInteger", "QLinearMatMul", "Gemm"])
_CONVOLUTIONS = frozenset(["Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "DeformConv"])
_RECURRENT = frozenset(["RNN", "GRU", "LSTM", "DynamicQuantizeLSTM"])
_ALL_PAIRS = frozenset(["Attention", "CDist", "DFT", "Det", "MultiHeadAttention", "NonMaxSuppression", "STFT"])
"""What may do something for each two rows or columns of an operand."""


def works_long(analysis: Analysis) -> bool:
    """Return whether a node does more than some 10^9 things, as far as the shapes tell; one in a loop counts once."""
    return any(_work(node, analysis) > _MOST for node in ir.traversal.RecursiveGraphIterator(analysis.model.graph))


def _work(node: ir.Node, analysis: Analysis) -> float:
    operands = [_sizes(value, analysis) for value in node.inputs]
    results = max((math.prod(_sizes(value, analysis)) for value in node.outputs), default=0)
    kernel = node.attributes.get_ints("kernel_shape", ())
    if node.op_type in _CONVOLUTIONS:
        weights = next((sizes for sizes in operands[1:] if len(sizes) > 2), [])
        given = max([results, math.prod(operands[0])]) if operands else 0
        return given * math.prod(weights[1:])
    if kernel:
        return results * math.prod(kernel)
    if node.op_type in _PRODUCTS and operands:
        return results * max(operands[0][-2:], default=1)
    if node.op_type == "Einsum":
        return _of_einsum(node, operands)
    if node.op_type in _RECURRENT and len(operands) > 1:
        return results * sum(max(sizes[-1:], default=1) for sizes in operands[:3])
    if node.op_type in _ALL_PAIRS and operands:
        return max(math.prod(sizes) * max(sizes, default=1) for sizes in operands)
    return 0


def _of_einsum(node: ir.Node, operands: Sequence[Sequence[int]]) -> float:
    """Return the product of the sizes of all letters."""
    terms = node.attributes.get_string("equation", "").split("->")[0].replace(" ", "").split(",")
    sizes: dict[str, int] = {}
    for term, dims in zip(terms, operands, strict=False):
        if "." not in term:
            sizes.update(zip(term, dims, strict=False))
    return math.prod(sizes.values())


def _sizes(value: ir.Value | None, analysis: Analysis) -> list[int]:
    dims = analysis.dims(value)
    return [] if dims is None else [dim if isinstance(dim, int) else _FREE for dim in dims]
