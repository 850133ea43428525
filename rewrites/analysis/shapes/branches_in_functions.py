"""Before opset 11 calls of functions that hold an If are shown to onnx as unknown operators whose results are declared.

    y = f (x, c)    f: If (c) then [2, 3] else [n, 3]    ->    y = <something of which nothing is known> (x, c), y [?, 3]

There onnx takes a size that one branch tells for what both give. In graphs that is kept from it, in functions it cannot be: what
a call gives is inferred where the function is inlined. Nothing is changed but the model that onnx is shown.

Works round ONNX-IF-10-SIZES.
"""

from collections.abc import Callable, Iterable

import onnx
import onnx.inliner

from rewrites.analysis.shapes.unknown_bounds import graphs_of, opset_of
from rewrites.base import since

__all__ = ["declare_calls_with_branches"]

_UNKNOWN = "functions that hold an If"


def declare_calls_with_branches(proto: onnx.ModelProto, infer: Callable[[onnx.ModelProto], onnx.ModelProto | None]) -> None:
    """Hide such calls in ``proto``, and declare what they give as ``infer`` finds it where they are inlined."""
    holding = _holding(proto)
    if not holding:
        return
    found = infer(onnx.inliner.inline_local_functions(proto))
    graphs = [] if found is None else list(graphs_of(found.graph))
    infos = {info.name: info for graph in graphs for info in (*graph.output, *graph.value_info)}
    for graph in graphs_of(proto.graph):
        declared = {info.name for info in (*graph.output, *graph.value_info)}
        for node in graph.node:
            if (node.domain, node.op_type) in holding:
                node.domain = _UNKNOWN
                graph.value_info.extend(infos[name] for name in node.output if name in infos and name not in declared)
    proto.opset_import.add(domain=_UNKNOWN, version=1)


def _holding(proto: onnx.ModelProto) -> set[tuple[str, str]]:
    """Return the functions of an opset before 11 that hold an If, or call one that does."""
    held: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for function in proto.functions:
        if opset_of(function) < since.IF_SIZES_APART or opset_of(proto) < since.IF_SIZES_APART:
            held[function.domain, function.name] = {(node.domain, node.op_type) for node in _nodes(function.node)}
    found = {name for name, kinds in held.items() if ("", "If") in kinds or ("ai.onnx", "If") in kinds}
    while more := {name for name, kinds in held.items() if name not in found and kinds & found}:
        found |= more
    return found


def _nodes(nodes: Iterable[onnx.NodeProto]) -> Iterable[onnx.NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from _nodes(graph.node)
