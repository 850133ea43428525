"""Find divisions of constant integers that may crash onnxruntime.

Dividing the lowest integer by -1 overflows:

    Div (-9223372036854775808, -1)    ->    SIGFPE, when the model is loaded or run

onnxruntime computes constants when it loads the model. The value of a computed constant is unknown here, so a division that uses it
counts as dangerous.

Works around ORT-DIVISION-OVERFLOW.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import onnx
from onnx.external_data_helper import uses_external_data

from ortscan.base.proto_graphs import bodies_of

__all__ = ["may_trap"]

_INT64 = onnx.TensorProto.INT64
_LEAST: Mapping[int, int] = {onnx.TensorProto.INT32: -(2**31), _INT64: -(2**63)}
_Constants = Mapping[str, onnx.TensorProto | None]
"""Constants by name. A computed constant is None if it may be an integer; otherwise it is a tensor without elements."""


def may_trap(model: onnx.ModelProto) -> bool:
    """Return True if a division of constants may crash the process that loads or runs ``model``."""
    return _may_trap(model.graph.node, _own_constants(model.graph)) or any(
        _may_trap(function.node, {}) for function in model.functions
    )


def _own_constants(graph: onnx.GraphProto) -> _Constants:
    return {tensor.name: tensor for tensor in graph.initializer}


def _may_trap(nodes: Iterable[onnx.NodeProto], outer: _Constants) -> bool:
    known = dict(outer)
    for node in nodes:
        bodies = list(bodies_of(node))
        if any(_may_trap(body.node, {**known, **_own_constants(body)}) for body in bodies):
            return True
        if node.op_type == "Constant":
            known[node.output[0]] = _constant(node)
        elif not bodies and all(name in known for name in node.input if name):
            if node.op_type == "Div" and _is_trap(*(known[name] for name in node.input)):
                return True
            known.update(_output_markers(node, known))
    return False


def _constant(node: onnx.NodeProto) -> onnx.TensorProto | None:
    for attribute in node.attribute:
        if attribute.name == "value":
            tensor: onnx.TensorProto = attribute.t
            return tensor
        if attribute.name in ("value_int", "value_ints"):
            return onnx.helper.make_tensor("", _INT64, [len(attribute.ints) or 1], attribute.ints or [attribute.i])
        if attribute.name.startswith("value_float"):
            return onnx.TensorProto(data_type=onnx.TensorProto.FLOAT)
    return None


def _output_markers(node: onnx.NodeProto, known: _Constants) -> _Constants:
    """Return a dict from the name of each output of ``node`` to a marker of its type.

    ``known`` has the constants and the markers of the node's operands. The marker of an output is:

    * None if the output may be an int32 or int64 tensor,
    * otherwise an empty tensor of the output's type.
    """
    kinds: list[int | None] = [None] * len(node.output)
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.domain not in ("", "ai.onnx"):
        pass
    elif node.op_type == "Cast" and "to" in attributes:
        kinds = [attributes["to"].i]
    elif node.op_type == "ConstantOfShape":
        kinds = [attributes["value"].t.data_type if "value" in attributes else onnx.TensorProto.FLOAT]
    elif onnx.defs.has(node.op_type):
        schema = onnx.defs.get_schema(node.op_type)
        operands = {formal.type_str: known[name] for formal, name in zip(schema.inputs, node.input, strict=False) if name}
        same = [operands.get(formal.type_str) for formal, _ in zip(schema.outputs, node.output, strict=False)]
        kinds[: len(same)] = [None if tensor is None else tensor.data_type for tensor in same]
    markers = [None if kind is None or kind in _LEAST else onnx.TensorProto(data_type=kind) for kind in kinds]
    return dict(zip(node.output, markers, strict=False))


def _is_trap(dividend: onnx.TensorProto | None, divisor: onnx.TensorProto | None) -> bool:
    kinds = {tensor.data_type for tensor in (dividend, divisor) if tensor is not None}
    if not kinds <= _LEAST.keys():
        return False
    return _may_hold(divisor, -1) and all(_may_hold(dividend, _LEAST[kind]) for kind in kinds)


def _may_hold(tensor: onnx.TensorProto | None, number: int) -> bool:
    return tensor is None or uses_external_data(tensor) or bool(np.any(onnx.numpy_helper.to_array(tensor) == number))
