"""Prepares a copy of the model for onnx's inference, which misreads nested graphs.

onnx 1.23 stores the integers that it computes under the name of the value only. So it mixes up values of the same name in two
branches. This module makes the names unique:

    If (c) <then_branch = a () => (y) { t = Shape (x) … }, else_branch = b () => (z) { t = Concat (u, v) … }>    t twice

Unlike onnxruntime, onnx does not see constants of outer graphs. This module copies them into the graphs that read them:

    p = {1, 0}; body (r) => (Pad (r, p))    ->    body (r) <p = {1, 0}> => (Pad (r, p))

Works around ONNX-NAMES-OF-OTHER-GRAPHS and ONNX-CAPTURED-CONSTANTS.
"""

import math
from collections import ChainMap
from collections.abc import Iterator, Mapping, Set

import onnx
from onnx.external_data_helper import uses_external_data

from rewrites.analysis.shapes.unknown_bounds import constants_of, inner_graphs_of

__all__ = ["feedable_inputs", "make_names_unique", "show_captured_constants"]


def make_names_unique(proto: onnx.ModelProto) -> None:
    """Rename each value in a nested graph of ``proto`` whose name another graph already uses."""
    for outer, used in (
        (proto.graph, set(_defined(proto.graph))),
        *((function, {*function.input, *_results(function)}) for function in proto.functions),
    ):
        for inner in inner_graphs_of(outer):
            _rename(inner, {}, used)


def _rename(graph: onnx.GraphProto, outer: Mapping[str, str], used: set[str]) -> None:
    """Rename each value in ``graph`` and its nested graphs if its name is in ``used``.

    Args:
        graph: The graph.
        outer: Maps the old names of renamed values of outer graphs to their new names.
        used: The names in use. The names of all values of ``graph`` are added.
    """
    names = dict(outer)
    for name in dict.fromkeys(_defined(graph)):
        names.pop(name, None)
        unique = name
        while unique in used:
            unique = f"{unique} of graph {len(used)}"
        if unique != name:
            names[name] = unique
        used.add(unique)
    if names:
        for infos in (graph.input, graph.output, graph.value_info, graph.initializer):
            for info in infos:
                info.name = names.get(info.name, info.name)
        for node in graph.node:
            for operands in (node.input, node.output):
                for index, name in enumerate(operands):
                    if name in names:
                        operands[index] = names[name]
    for inner in inner_graphs_of(graph):
        _rename(inner, names, used)


def _defined(graph: onnx.GraphProto) -> Iterator[str]:
    yield from (info.name for infos in (graph.input, graph.initializer) for info in infos)
    yield from _results(graph)


def _results(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[str]:
    return (name for node in graph.node for name in node.output if name)


_MOST = 128
"""The largest number of elements of a constant that is copied. A longer one hardly contains sizes."""

_DEFAULTS_SINCE = 4

_Known = ChainMap[str, onnx.TensorProto | None]
"""Constants by name, from the innermost graph to the outermost; None for other values."""


def show_captured_constants(graph: onnx.GraphProto, feedable: Set[str]) -> None:
    """Copy each small constant of ``graph`` and of its nested graphs into the nested graphs that read it.

    ``feedable``: the names of inputs that a caller may feed. Initializers with these names are default values and no constants.
    """
    _copy_into_nested(graph, ChainMap({name: tensor for name, tensor in _small_constants(graph).items() if name not in feedable}))


def feedable_inputs(model: onnx.ModelProto) -> set[str]:
    """Return the names of the inputs that a caller may feed.

    Before IR version 4, a caller may not feed inputs that have an initializer.
    """
    listed = {info.name for info in model.graph.input}
    return listed if model.ir_version >= _DEFAULTS_SINCE else listed - {tensor.name for tensor in model.graph.initializer}


def _copy_into_nested(graph: onnx.GraphProto, constants: _Known) -> None:
    for inner in inner_graphs_of(graph):
        _copy_constants_into(inner, constants)


def _copy_constants_into(graph: onnx.GraphProto, outer_constants: _Known) -> None:
    own_constants: dict[str, onnx.TensorProto | None] = {
        info.name: None for infos in (graph.input, graph.initializer) for info in infos
    }
    own_constants |= {name: None for node in graph.node for name in node.output}
    own_constants |= _small_constants(graph)
    for name in {name: None for node in graph.node for name in node.input if name not in own_constants}:
        tensor = outer_constants.get(name)
        if tensor is not None:
            graph.initializer.add().CopyFrom(tensor)
            graph.initializer[-1].name = name
    _copy_into_nested(graph, outer_constants.new_child(own_constants))


def _small_constants(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    return {name: tensor for name, tensor in constants_of(graph).items() if _is_small(tensor)}


def _is_small(tensor: onnx.TensorProto) -> bool:
    return tensor.data_type != onnx.TensorProto.STRING and math.prod(tensor.dims) <= _MOST and not uses_external_data(tensor)
