"""Find loops that may exhaust the memory, and nodes that may run too long.

No timeout can stop a single node. Examples::

    Loop with the state x and x' = Concat (x, x)                      x doubles in each step
    Loop (n, ...) that stacks a value of each step                    if n is missing, large, or computed by another loop
    MaxPool <kernel_shape = [1500, 1500]> (x [1, 1, 3000, 3000])      5 * 10^12 comparisons
    MatMul (x [20000, 20000], x)                                      8 * 10^12 products

Works around ORT-UNSTOPPABLE-NODE.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx
import onnx_ir as ir
from onnx.external_data_helper import uses_external_data

from ortscan.base.proto_graphs import all_graphs, bodies_of
from ortscan.running.analysis import Analysis
from ortscan.running.graph_index import all_nodes
from rewrites.graph.walk import node_graphs

__all__ = ["may_exhaust_memory", "may_run_long"]

_MANY_STEPS = 10_000
_GROWING_ALONE = frozenset(["Expand", "Resize", "Tile", "Upsample"])
_MULTIPLYING = _GROWING_ALONE | {"Concat", "Einsum", "SequenceInsert", "StringConcat"}
_MOVING, _PAIRING = "Reshape", "Mul"
"""Two operators that together turn n numbers into n * n, as in a vector multiplied by its transpose."""
_OF_SIZES = frozenset(
    [
        *("Add", "Cast", "Concat", "Div", "Gather", "Identity", "Max", "Min", "Mod", "Neg", "ReduceMax", "ReduceMin", "Reshape"),
        *("Shape", "Size", "Slice", "Squeeze", "Sub", "Unsqueeze"),
    ]
)
"""The operators that compute trip counts from sizes and small constants."""

_MOST = 4e9
"""The most operations of a node, such as multiplications: a few seconds on one thread."""

_FREE = 16
"""The assumed size of a free dimension. Most generated sizes are smaller."""

_PRODUCTS = frozenset(["MatMul", "MatMulInteger", "QLinearMatMul", "Gemm"])
_CONVOLUTIONS = frozenset(["Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "DeformConv"])
_RECURRENT = frozenset(["RNN", "GRU", "LSTM", "DynamicQuantizeLSTM"])
_ALL_PAIRS = frozenset(["Attention", "CDist", "DFT", "Det", "MultiHeadAttention", "NonMaxSuppression", "STFT"])
"""Operators that may work on each pair of rows or columns of an operand."""


def may_exhaust_memory(proto: onnx.ModelProto, analysis: Analysis | None) -> bool:
    """Return True if a Loop may need an unlimited amount of memory.

    There are three cases:

    * A state of the Loop may grow in each step.
    * The Loop stacks a value of each step, and no limit of its trip count is known.
    * The model has a Loop, and ``analysis`` is None, so the shapes are unknown.
    """
    loops = [node for node, _ in all_nodes(proto) if node.op_type == "Loop"]
    if not loops:
        return False
    producers = {name: node for node, _ in all_nodes(proto) for name in node.output}
    constants = dict(_constants(proto))
    stacking = [node for node in loops if any(len(body.output) > len(body.input) - 1 for body in bodies_of(node))]
    if analysis is None or not all(_is_bounded(node.input[0], producers, constants) for node in stacking):
        return True
    return any(
        node.op_type == "Loop" and _may_grow(node, analysis) for node in ir.traversal.RecursiveGraphIterator(analysis.model.graph)
    )


def _is_bounded(count: str, producers: Mapping[str, onnx.NodeProto], constants: Mapping[str, int]) -> bool:
    """Return True if the trip count ``count`` is small when the model runs on generated inputs.

    The trip count is small if it is computed only from sizes, small constants and inputs, because generated inputs are small.
    """
    pending, seen = [count], set[str]()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        if not name or constants.get(name, 0) > _MANY_STEPS:
            return False
        producer = producers.get(name)
        if producer is None or name in constants or producer.op_type in ("Shape", "Size"):
            continue
        if producer.op_type not in _OF_SIZES:
            return False
        pending += filter(None, producer.input)
    return True


def _may_grow(loop: ir.Node, analysis: Analysis) -> bool:
    """Return True if a state of ``loop`` may become several times larger in each step.

    Only states of unknown shape are considered.
    """
    body = loop.attributes["body"].as_graph()
    states = body.outputs[1 : len(body.inputs) - 1]
    if all(None not in (analysis.dims(value) or [None]) and value.dtype != ir.DataType.STRING for value in states):
        return False
    carried, kinds = set[ir.Value | None](body.inputs[2:]), set[str]()
    for node in ir.traversal.RecursiveGraphIterator(body):
        count = sum(value in carried for value in node.inputs)
        if count or node_graphs(node):
            carried.update(node.outputs)
        if node.op_type in _MULTIPLYING and (count > 1 or (node.op_type in _GROWING_ALONE and count)):
            return True
        kinds.update([_MOVING] if count and node.op_type in ("Flatten", "Reshape") else [_PAIRING] if count > 1 else [])
    return {_MOVING, _PAIRING} <= kinds


def _constants(proto: onnx.ModelProto) -> Iterator[tuple[str, int]]:
    """Yield the name of each integer constant, with its largest element."""
    tensors = [(tensor.name, tensor) for graph in all_graphs(proto) for tensor in graph.initializer]
    for node, _ in all_nodes(proto):
        if node.op_type == "Constant" and node.attribute:
            value = node.attribute[0]
            if value.name in ("value_int", "value_ints"):
                yield node.output[0], max([value.i, *value.ints])
            if value.name == "value":
                tensors.append((node.output[0], value.t))
    for name, tensor in tensors:
        if tensor.data_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32):
            large = uses_external_data(tensor)
            yield name, _MANY_STEPS + 1 if large else int(np.max(onnx.numpy_helper.to_array(tensor), initial=0))


def may_run_long(analysis: Analysis) -> bool:
    """Return True if a node needs more than ``_MOST`` operations, as far as shapes are known.

    For a node in a loop, only the operations of a single step are counted.
    """
    return any(_work(node, analysis) > _MOST for node in ir.traversal.RecursiveGraphIterator(analysis.model.graph))


def _work(node: ir.Node, analysis: Analysis) -> float:
    operands = [_sizes(value, analysis) for value in node.inputs]
    results = max((math.prod(_sizes(value, analysis)) for value in node.outputs), default=0)
    kernel = node.attributes.get_ints("kernel_shape", ())
    if node.op_type in _CONVOLUTIONS:
        weights = next((sizes for sizes in operands[1:] if len(sizes) > 2), [])
        elements = max([results, math.prod(operands[0])]) if operands else 0
        return elements * math.prod(weights[1:])
    if kernel:
        return results * math.prod(kernel)
    if node.op_type in _PRODUCTS and operands:
        return results * max(operands[0][-2:], default=1)
    if node.op_type == "Einsum":
        return _einsum_work(node, operands)
    if node.op_type in _RECURRENT and len(operands) > 1:
        return results * sum(max(sizes[-1:], default=1) for sizes in operands[:3])
    if node.op_type in _ALL_PAIRS and operands:
        return max(math.prod(sizes) * max(sizes, default=1) for sizes in operands)
    return 0


def _einsum_work(node: ir.Node, operands: Sequence[Sequence[int]]) -> float:
    """Return the number of operations of an Einsum whose operands have the sizes ``operands``.

    This is the product of the sizes of all letters in its equation.
    """
    terms = node.attributes.get_string("equation", "").split("->")[0].replace(" ", "").split(",")
    sizes: dict[str, int] = {}
    for term, dims in zip(terms, operands, strict=False):
        if "." not in term:
            sizes.update(zip(term, dims, strict=False))
    return math.prod(sizes.values())


def _sizes(value: ir.Value | None, analysis: Analysis) -> list[int]:
    dims = analysis.dims(value)
    return [] if dims is None else [dim if isinstance(dim, int) else _FREE for dim in dims]
