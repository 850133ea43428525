"""How coarsely an output is computed, whatever its own type: the coarsest floats that it depends on by way of floats.

    x (float16) ─► Cast ─► MatMul ─► y (double)         y has the roundings of float16
    x (double)  ─► MatMul ─► z (double)                  z has its own, though another output of the model is coarser

What depends on a float only through integers or truths is as fine as it looks: such a value is right or wrong.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from ortscan.base.proto_graphs import bodies_of
from ortscan.ort.element_types import numpy_type
from ortscan.running.analysis import analyse
from ortscan.running.graph_index import all_nodes
from ortscan.verification.closeness.dependence import Dependence
from ortscan.verification.oracle.readable import if_readable

__all__ = ["coarsest_floats"]

_COARSEST_FIRST = (
    onnx.TensorProto.FLOAT8E5M2,
    onnx.TensorProto.FLOAT8E5M2FNUZ,
    onnx.TensorProto.FLOAT8E4M3FN,
    onnx.TensorProto.FLOAT8E4M3FNUZ,
    onnx.TensorProto.BFLOAT16,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.DOUBLE,
)


def coarsest_floats(proto: onnx.ModelProto) -> dict[str, np.dtype[Any] | None]:
    """Return the coarsest float type of each output's ancestors by the output's name, None where there is none."""
    names = [value.name for value in proto.graph.output]
    known = set(_all_types(proto)).intersection(_COARSEST_FIRST)
    if len(known) < 2 and not _casts_as_told(proto):
        return dict.fromkeys(names, _coarsest(known))
    model = if_readable(lambda: analyse(proto, []).model)
    if model is None or len(model.graph.outputs) != len(names):
        return dict.fromkeys(names, _coarsest(known))
    dependence = Dependence(model)
    return {name: _coarsest(_types_above(value, dependence)) for name, value in zip(names, model.graph.outputs, strict=True)}


def _coarsest(types: Iterable[int]) -> np.dtype[Any] | None:
    types = set(types)
    return next((numpy_type(kind) for kind in _COARSEST_FIRST if kind in types), None)


def _types_above(output: ir.Value, dependence: Dependence) -> Iterator[int]:
    """Return the types of all floats that ``output`` is computed from."""
    waiting, seen = [output], {output}
    while waiting:
        value = waiting.pop()
        kind = _type(value)
        if value is not output and kind is not None and kind not in _COARSEST_FIRST:
            continue
        if kind is not None:
            yield kind
        above = dependence.of(value)
        yield from above.types
        fresh = [each for each in above.values if each not in seen]
        seen.update(fresh)
        waiting += fresh


def _type(value: ir.Value) -> int | None:
    node = value.producer()
    if value.dtype is None and node is not None and node.op_type == "Cast":
        return node.attributes.get_int("to")
    return None if value.dtype is None else int(value.dtype)


def _casts_as_told(proto: onnx.ModelProto) -> bool:
    """Whether a function casts to a type that its calls name."""
    nodes = (node for node, _ in all_nodes(proto) if node.op_type == "Cast") if proto.functions else ()
    return any(attribute.ref_attr_name for node in nodes for attribute in node.attribute)


def _types_within(node: onnx.NodeProto) -> Iterator[int]:
    for attribute in node.attribute:
        if node.op_type == "Cast" and attribute.name == "to":
            yield attribute.i
        if attribute.HasField("t"):
            yield attribute.t.data_type
    for body in bodies_of(node):
        for value in (*body.input, *body.output, *body.value_info):
            yield value.type.tensor_type.elem_type
        yield from (tensor.data_type for tensor in body.initializer)
        for inner in body.node:
            yield from _types_within(inner)


def _all_types(proto: onnx.ModelProto) -> Iterator[int]:
    for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
        yield value.type.tensor_type.elem_type
    yield from (tensor.data_type for tensor in proto.graph.initializer)
    for node, _ in all_nodes(proto):
        yield from _types_within(node)
