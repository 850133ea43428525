"""Prepares the scopes of a model for onnx's inference: unique names in all graphs, and constants in the graphs that read them.

    If (c) <then_branch = a () => (y) { t = Shape (x) … }, else_branch = b () => (z) { t = Concat (u, v) … }>    t twice
    p = {1, 0}; body (r) => (Pad (r, p))    ->    body (r) <p = {1, 0}> => (Pad (r, p))

onnx 1.23 follows integers by name alone, so it confuses values of the same name in two branches. It does not know the constants of
outer graphs, although onnxruntime does. Only the copy of the model for onnx changes.

Works around ONNX-NAMES-OF-OTHER-GRAPHS and ONNX-CAPTURED-CONSTANTS.
"""

import math
from collections import ChainMap
from collections.abc import Iterator, Mapping, Set

import onnx
from onnx.external_data_helper import uses_external_data

__all__ = ["give_own_names", "given_to", "show_captured_constants"]


def give_own_names(proto: onnx.ModelProto) -> None:
    """Rename values in inner graphs of ``proto``, and of its functions, if another graph has defined the name before."""
    for outer, used in (
        (proto.graph, set(_defined(proto.graph))),
        *((function, {*function.input, *_results(function)}) for function in proto.functions),
    ):
        for inner in _inner_graphs(outer):
            _rename(inner, {}, used)


def _rename(graph: onnx.GraphProto, outer: Mapping[str, str], used: set[str]) -> None:
    """Rename in ``graph``; ``outer`` has the new names from the graphs around it."""
    names = dict(outer)
    for name in dict.fromkeys(_defined(graph)):
        names.pop(name, None)
        own = name
        while own in used:
            own = f"{own} of graph {len(used)}"
        if own != name:
            names[name] = own
        used.add(own)
    if names:
        for infos in (graph.input, graph.output, graph.value_info, graph.initializer):
            for info in infos:
                info.name = names.get(info.name, info.name)
        for node in graph.node:
            for operands in (node.input, node.output):
                for index, name in enumerate(operands):
                    if name in names:
                        operands[index] = names[name]
    for inner in _inner_graphs(graph):
        _rename(inner, names, used)


def _defined(graph: onnx.GraphProto) -> Iterator[str]:
    yield from (info.name for infos in (graph.input, graph.initializer) for info in infos)
    yield from _results(graph)


def _results(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[str]:
    return (name for node in graph.node for name in node.output if name)


def _inner_graphs(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.GraphProto]:
    for node in graph.node:
        for attribute in node.attribute:
            yield from [attribute.g] if attribute.HasField("g") else attribute.graphs


_MOST = 128
"""The most elements of a tensor that determines sizes."""

_DEFAULTS_SINCE = 4

_Known = ChainMap[str, onnx.TensorProto | None]
"""Constants by name, from the innermost to the outermost graph; None for a value that is not constant."""


def show_captured_constants(graph: onnx.GraphProto, fed: Set[str]) -> None:
    """Copy the small constants that inner graphs of ``graph`` read into these graphs, except the inputs ``fed`` to the model."""
    _show_inside(graph, ChainMap({name: tensor for name, tensor in _constants_of(graph) if name not in fed}))


def given_to(model: onnx.ModelProto) -> set[str]:
    """Return the names of the values that a caller may feed. Before IR 4, initializers are not among them."""
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
