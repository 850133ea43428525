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

__all__ = ["give_own_names", "given_to", "show_captured_constants"]


def give_own_names(proto: onnx.ModelProto) -> None:
    """Rename each value in a nested graph if another graph of ``proto`` already uses its name."""
    for outer, used in (
        (proto.graph, set(_defined(proto.graph))),
        *((function, {*function.input, *_results(function)}) for function in proto.functions),
    ):
        for inner in inner_graphs_of(outer):
            _rename(inner, {}, used)


def _rename(graph: onnx.GraphProto, outer: Mapping[str, str], used: set[str]) -> None:
    """Rename each value in ``graph`` and its nested graphs if its name is in ``used``.

    The names of all these values are added to ``used``. ``outer``: the new names of values of outer graphs, by their old names.
    """
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


def show_captured_constants(graph: onnx.GraphProto, fed: Set[str]) -> None:
    """Copy each small constant of ``graph`` and of its nested graphs into the nested graphs that read it.

    ``fed``: the names of inputs that a caller may feed. Their default values are not constants.
    """
    _show_inside(graph, ChainMap({name: tensor for name, tensor in _small_constants(graph).items() if name not in fed}))


def given_to(model: onnx.ModelProto) -> set[str]:
    """Return the names of the inputs that a caller may feed.

    Before IR version 4, inputs with an initializer may not be fed.
    """
    listed = {info.name for info in model.graph.input}
    return listed if model.ir_version >= _DEFAULTS_SINCE else listed - {tensor.name for tensor in model.graph.initializer}


def _show_inside(graph: onnx.GraphProto, known: _Known) -> None:
    for inner in inner_graphs_of(graph):
        _show(inner, known)


def _show(graph: onnx.GraphProto, around: _Known) -> None:
    own: dict[str, onnx.TensorProto | None] = {info.name: None for infos in (graph.input, graph.initializer) for info in infos}
    own |= {name: None for node in graph.node for name in node.output}
    own |= _small_constants(graph)
    for name in {name: None for node in graph.node for name in node.input if name not in own}:
        tensor = around.get(name)
        if tensor is not None:
            graph.initializer.add().CopyFrom(tensor)
            graph.initializer[-1].name = name
    _show_inside(graph, around.new_child(own))


def _small_constants(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    return {name: tensor for name, tensor in constants_of(graph).items() if _is_small(tensor)}


def _is_small(tensor: onnx.TensorProto) -> bool:
    return tensor.data_type != onnx.TensorProto.STRING and math.prod(tensor.dims) <= _MOST and not uses_external_data(tensor)
