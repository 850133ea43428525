"""Normalise models that are valid but written in an unusual way. Every function works in place.

* Nodes are sorted, although onnxruntime accepts main graphs in any order. If ``onnx_ir`` clones the unsorted body of a loop, nodes
  of the clone read values of the original body.
* Negative sizes, which some exporters write for free sizes, become unknown.
* Outputs that are declared several times, as in ``body (i, bool c) => (c, y)``, get the first type, as in onnxruntime. ``onnx_ir``
  uses the last type.
* Outputs in bodies and of Scans are replaced if onnxruntime rejects them::

    body (s, x) => (n, d)    with d from outside    ->    body (s, x) => (n, Identity(d))
    l = Scan body (s, x) => (n, y)                  ->    l, nobody_reads = Scan body (s, x) => (n, y)

Works around ORT-SCAN-UNNAMED-RESULT and ORT-OUTER-VALUE-RETURNED.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

import onnx
import onnx_ir as ir

from ortscan.modelio.interface import without_negative_sizes
from ortscan.modelio.slots import graphs_in
from rewrites.graph.names import Names
from rewrites.graph.walk import has_order, node_graphs

__all__ = ["declare_first_types", "free_negative_sizes", "is_sorted", "is_undefined", "sort_nodes", "tie_outputs"]


def is_sorted(model: ir.Model) -> bool:
    """Return True if every node comes after the nodes whose outputs it reads.

    A node with nested graphs also reads the values that these graphs capture.
    """
    return all(map(has_order, (model.graph, *(function.graph for function in model.functions.values()))))


def sort_nodes(model: ir.Model) -> None:
    """Sort the nodes of an unsorted model. Raise ValueError if they form a cycle."""
    if is_sorted(model):
        return
    model.graph.sort()
    for function in model.functions.values():
        function.sort()


def free_negative_sizes(model: ir.Model) -> None:
    """Make negative declared sizes unknown. The interface still has the original declarations."""
    for graph in graphs_in(model):
        for value in (*graph.inputs, *(output for node in graph for output in node.outputs)):
            value.shape = without_negative_sizes(value.shape)


def declare_first_types(model: ir.Model, proto: onnx.ModelProto) -> None:
    """Correct the types and shapes of outputs that ``proto`` declares several times.

    Each output gets the first type and the first shape that its graph declares for the name of the output. A graph declares types
    in its fields ``input``, ``output`` and ``value_info``, in this order. ``model`` was read from ``proto``.
    """
    pairs = [_graph_pairs(proto.graph, model.graph)]
    for function in proto.functions:
        key = function.domain, function.name, function.overload
        pairs.append(_nested_pairs(function.node, model.functions[key].graph))
    for declared, graph in chain.from_iterable(pairs):
        _declare_outputs(declared, graph)


def _graph_pairs(proto: onnx.GraphProto, graph: ir.Graph) -> Iterator[tuple[onnx.GraphProto, ir.Graph]]:
    yield proto, graph
    yield from _nested_pairs(proto.node, graph)


def _nested_pairs(nodes: Iterable[onnx.NodeProto], graph: ir.Graph) -> Iterator[tuple[onnx.GraphProto, ir.Graph]]:
    for proto, node in zip(nodes, graph, strict=True):
        for attribute in proto.attribute:
            if attribute.ref_attr_name:
                continue
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _graph_pairs(attribute.g, node.attributes[attribute.name].as_graph())
            elif attribute.type == onnx.AttributeProto.GRAPHS:
                for inner_proto, inner in zip(attribute.graphs, node.attributes[attribute.name].as_graphs(), strict=True):
                    yield from _graph_pairs(inner_proto, inner)


def _declare_outputs(proto: onnx.GraphProto, graph: ir.Graph) -> None:
    names = {value.name for value in graph.outputs}
    declared: dict[str, list[onnx.TypeProto]] = {}
    for info in (*proto.input, *proto.output, *proto.value_info):
        if info.name in names and info.HasField("type"):
            declared.setdefault(info.name, []).append(info.type)
    for value in graph.outputs:
        types = declared.get(value.name or "", [])
        if len(types) > 1 or (types and value.type is None):
            value.type = next(filter(None, map(ir.serde.deserialize_type_proto_for_type, types)), None)
            shapes = map(ir.serde.deserialize_type_proto_for_shape, types)
            value.shape = next((shape for shape in shapes if shape is not None), None)


def tie_outputs(model: ir.Model) -> list[str]:
    """Repair bodies and Scans with outputs that onnxruntime rejects. Return a sentence on each repair.

    * If an output of a nested graph is a value of a graph around it, an Identity copies the value.
    * If a Scan omits the last outputs of its body, these outputs are added to the Scan.

    An output that no graph defines stays undefined.
    """
    notes = []
    names: Names | None = None
    tops = (model.graph, *(function.graph for function in model.functions.values()))
    has_undefined = any(is_undefined(value) for graph in graphs_in(model) for value in graph.outputs)
    for graph, outer_values in [pair for top in tops if has_undefined for pair in _graphs_within(top, {})]:
        for index, value in enumerate(graph.outputs):
            outer = outer_values.get(value.name or "")
            if outer is not None and is_undefined(value):
                names = names or Names(model)
                copy = ir.Value(name=names.fresh(f"{value.name}_out"), type=value.type, shape=value.shape)
                graph.append(ir.Node("", "Identity", [outer], outputs=[copy], name=names.fresh(f"{value.name}/Identity")))
                graph.outputs[index] = copy
                notes.append(
                    f"inserted an Identity for the output '{value.name}' of '{graph.name}', a value of the graph around it"
                )
    for node in [node for graph in graphs_in(model) for node in graph if node.op_type == "Scan" and node.domain == ""]:
        missing = [output for body in node_graphs(node) for output in body.outputs][len(node.outputs) :]
        if missing and node.outputs:
            names = names or Names(model)
            count = len(node.outputs)
            node.resize_outputs(count + len(missing))
            for value, inner in zip(node.outputs[count:], missing, strict=True):
                value.name, value.type = names.fresh(f"{inner.name}_unread"), inner.type
            notes.append(f"added the unread outputs of its body to the Scan producing '{node.outputs[0].name}'")
    return notes


def is_undefined(value: ir.Value) -> bool:
    """Return True if nothing in the model defines ``value``."""
    return value.producer() is None and not value.is_graph_input() and not value.is_initializer()


def _graphs_within(graph: ir.Graph, outer_values: Mapping[str, ir.Value]) -> Iterator[tuple[ir.Graph, Mapping[str, ir.Value]]]:
    """Yield each graph nested in ``graph``, with a dict of the values of all graphs around it, by name.

    ``outer_values`` are the values of the graphs around ``graph``, by name.
    """
    own = [*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs)]
    values = {**outer_values, **{value.name: value for value in own if value.name}}
    for node in graph:
        for inner in node_graphs(node):
            yield inner, values
            yield from _graphs_within(inner, values)
