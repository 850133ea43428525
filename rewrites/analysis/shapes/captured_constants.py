"""Constants that inner graphs read of the graphs around them stand in these graphs too, for onnx's inference.

    p = {1, 0}; body (r) => (Pad (r, p))    ->    body (r) <p = {1, 0}> => (Pad (r, p))

onnxruntime knows them there. Nothing is changed but the model that onnx is shown.

Works round ONNX-CAPTURED-CONSTANTS.
"""

import math
from collections import ChainMap
from collections.abc import Iterator, Set

import onnx
from onnx.external_data_helper import uses_external_data

__all__ = ["given_to", "show_captured_constants"]

_MOST = 128
"""How many numbers a tensor may hold that tells sizes."""

_DEFAULTS_SINCE = 4

_Known = ChainMap[str, onnx.TensorProto | None]
"""Constants by name, in the graphs from the innermost to the outermost; None for what is no constant."""


def show_captured_constants(graph: onnx.GraphProto, given: Set[str]) -> None:
    """Let the graphs inside of ``graph`` have the small constants that they read; what is ``given`` to the model is none."""
    _show_inside(graph, ChainMap({name: tensor for name, tensor in _constants_of(graph) if name not in given}))


def given_to(model: onnx.ModelProto) -> set[str]:
    """Return the names of what a caller may feed; before IR 4 no initializer may be."""
    listed = {info.name for info in model.graph.input}
    return listed if model.ir_version >= _DEFAULTS_SINCE else listed - {tensor.name for tensor in model.graph.initializer}


def _show_inside(graph: onnx.GraphProto, known: _Known) -> None:
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                _show(inner, known)


def _show(graph: onnx.GraphProto, around: _Known) -> None:
    own: dict[str, onnx.TensorProto | None] = {info.name: None for infos in (graph.input, graph.initializer) for info in infos}
    own |= {name: None for node in graph.node for name in node.output}
    own |= dict(_constants_of(graph))
    for name in {name: None for node in graph.node for name in node.input if name not in own}:
        tensor = around.get(name)
        if tensor is not None:
            graph.initializer.add().CopyFrom(tensor)
            graph.initializer[-1].name = name
    _show_inside(graph, around.new_child(own))


def _constants_of(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    for tensor in graph.initializer:
        if _is_small(tensor):
            yield tensor.name, tensor
    for node in graph.node:
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx") and len(node.attribute) == 1:
            value = _tensor_of(node.attribute[0])
            if value is not None and _is_small(value):
                yield node.output[0], value


def _tensor_of(value: onnx.AttributeProto) -> onnx.TensorProto | None:
    match value.name:
        case "value":
            return value.t
        case "value_int":
            return onnx.helper.make_tensor("", onnx.TensorProto.INT64, [], [value.i])
        case "value_ints":
            return onnx.helper.make_tensor("", onnx.TensorProto.INT64, [len(value.ints)], value.ints)
        case "value_float":
            return onnx.helper.make_tensor("", onnx.TensorProto.FLOAT, [], [value.f])
        case "value_floats":
            return onnx.helper.make_tensor("", onnx.TensorProto.FLOAT, [len(value.floats)], value.floats)
    return None


def _is_small(tensor: onnx.TensorProto) -> bool:
    return tensor.data_type != onnx.TensorProto.STRING and math.prod(tensor.dims) <= _MOST and not uses_external_data(tensor)
