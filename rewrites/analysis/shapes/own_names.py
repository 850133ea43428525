"""Graphs inside a model get names of their own for their values, where two graphs use one name.

    If (c) <then_branch = a () => (y) { t = Shape (x) … }, else_branch = b () => (z) { t = Concat (u, v) … }>    t twice

Which is right, but onnx's inference (1.23) follows integers by name alone: what one branch holds it takes for what the other does
where it cannot tell. Nothing is changed but the model that onnx is shown.

Works round ONNX-NAMES-OF-OTHER-GRAPHS.
"""

from collections.abc import Iterator, Mapping

import onnx

__all__ = ["give_own_names"]


def give_own_names(proto: onnx.ModelProto) -> None:
    """Rename what inner graphs of ``proto``, and of its functions, define under a name that another graph has defined before."""
    for outer, taken in (
        (proto.graph, set(_defined(proto.graph))),
        *((function, {*function.input, *_results(function)}) for function in proto.functions),
    ):
        for inner in _inner_graphs(outer):
            _rename(inner, {}, taken)


def _rename(graph: onnx.GraphProto, outer: Mapping[str, str], taken: set[str]) -> None:
    """``outer``: the new names of what was renamed in the graphs around."""
    names = dict(outer)
    for name in dict.fromkeys(_defined(graph)):
        names.pop(name, None)
        own = name
        while own in taken:
            own = f"{own} of graph {len(taken)}"
        if own != name:
            names[name] = own
        taken.add(own)
    if names:
        for infos in (graph.input, graph.output, graph.value_info, graph.initializer):
            for info in infos:
                info.name = names.get(info.name, info.name)
        for node in graph.node:
            for operands in (node.input, node.output):
                for place, name in enumerate(operands):
                    if name in names:
                        operands[place] = names[name]
    for inner in _inner_graphs(graph):
        _rename(inner, names, taken)


def _defined(graph: onnx.GraphProto) -> Iterator[str]:
    yield from (info.name for infos in (graph.input, graph.initializer) for info in infos)
    yield from _results(graph)


def _results(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[str]:
    return (name for node in graph.node for name in node.output if name)


def _inner_graphs(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.GraphProto]:
    for node in graph.node:
        for attribute in node.attribute:
            yield from [attribute.g] if attribute.HasField("g") else attribute.graphs
