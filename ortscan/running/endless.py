"""Loops that make more and more: on made-up inputs they may take all memory.

Loop (..., x)      x' = Concat (x, x)
Loop (n, ...)      that stacks what it computes, n computed by another loop, or a large constant, or no n
"""

from collections.abc import Iterator, Mapping

import numpy as np
import onnx
import onnx_ir as ir
from onnx.external_data_helper import uses_external_data

from ortscan.base.proto_graphs import all_graphs, bodies_of
from ortscan.running.analysis import Analysis
from ortscan.running.subgraphs import all_nodes
from rewrites.graph.walk import node_graphs

__all__ = ["may_take_all"]

_MANY_STEPS = 10_000
_BY_ITSELF = frozenset(["Expand", "Resize", "Tile", "Upsample"])
_MULTIPLYING = _BY_ITSELF | {"Concat", "Einsum", "SequenceInsert", "StringConcat"}
_MOVING, _PAIRING = "Reshape", "Mul"
"""Together they make n * n numbers of n: x * transposed x, as one vector."""
_OF_SIZES = frozenset(
    [
        *("Add", "Cast", "Concat", "Div", "Gather", "Identity", "Max", "Min", "Mod", "Neg", "ReduceMax", "ReduceMin", "Reshape"),
        *("Shape", "Size", "Slice", "Squeeze", "Sub", "Unsqueeze"),
    ]
)
"""What counts of steps are commonly computed with from sizes; the largest comes from sizes and small constants."""


def may_take_all(proto: onnx.ModelProto, analysis: Analysis | None) -> bool:
    """Whether a Loop may carry what grows with each step, or stack steps without number, as far as can be seen."""
    loops = [node for node, _ in all_nodes(proto) if node.op_type == "Loop"]
    if not loops:
        return False
    makers = {name: node for node, _ in all_nodes(proto) for name in node.output}
    constants = dict(_constants(proto))
    stacking = [node for node in loops if any(len(body.output) > len(body.input) - 1 for body in bodies_of(node))]
    if analysis is None or not all(_is_bounded(node.input[0], makers, constants) for node in stacking):
        return True
    return any(
        node.op_type == "Loop" and _may_grow(node, analysis) for node in ir.traversal.RecursiveGraphIterator(analysis.model.graph)
    )


def _is_bounded(count: str, makers: Mapping[str, onnx.NodeProto], constants: Mapping[str, int]) -> bool:
    """Whether ``count`` is an input of the model, which are chosen small, or made of sizes and small constants."""
    waiting, seen = [count], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if not name or constants.get(name, 0) > _MANY_STEPS:
            return False
        maker = makers.get(name)
        if maker is None or name in constants or maker.op_type in ("Shape", "Size"):
            continue
        if maker.op_type not in _OF_SIZES:
            return False
        waiting += [each for each in maker.input if each]
    return True


def _may_grow(loop: ir.Node, analysis: Analysis) -> bool:
    """Whether a state of ``loop``, of a shape that is not known, may be a multiple of what it was a step before."""
    body = loop.attributes["body"].as_graph()
    made = body.outputs[1 : len(body.inputs) - 1]
    if all(None not in (analysis.dims(value) or [None]) and value.dtype != ir.DataType.STRING for value in made):
        return False
    carried, found = set[ir.Value | None](body.inputs[2:]), set[str]()
    for node in ir.traversal.RecursiveGraphIterator(body):
        count = sum(value in carried for value in node.inputs)
        if count or node_graphs(node):
            carried.update(node.outputs)
        if node.op_type in _MULTIPLYING and (count > 1 or (node.op_type in _BY_ITSELF and count)):
            return True
        found.update([_MOVING] if count and node.op_type in ("Flatten", "Reshape") else [_PAIRING] if count > 1 else [])
    return {_MOVING, _PAIRING} <= found


def _constants(proto: onnx.ModelProto) -> Iterator[tuple[str, int]]:
    """Yield integer constants, each with the largest number in it."""
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
