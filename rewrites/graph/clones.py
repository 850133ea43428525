"""Copies nodes with their bodies and branches. The copies may read other values."""

from collections.abc import Iterable, Mapping

import onnx_ir as ir

from rewrites.graph.dims import without_names
from rewrites.graph.marks import carry
from rewrites.graph.names import Names

__all__ = ["copy_nodes"]


def copy_nodes(
    nodes: Iterable[ir.Node], value_map: dict[ir.Value, ir.Value], names: Names, suffix: str, *, named: bool
) -> list[ir.Node]:
    """Return detached copies of ``nodes``, with fresh names.

    Args:
        nodes: The nodes to copy, in topological order. An Identity is not copied: its users read its input.
        value_map: Maps values that the nodes read to the values that the copies read instead. This function adds the results of
            the nodes, mapped to the results of the copies.
        names: The names of the model.
        suffix: The suffix of the new names.
        named: True if the copies may keep the names of dimensions. Otherwise, named dimensions become unknown.
    """
    copies = []
    for node in nodes:
        copied = node.inputs[0] if node.op_type == "Identity" and node.domain == "" else None
        if copied is None:
            copies.append(_copy(node, value_map, names, suffix, named))
        else:
            value_map[node.outputs[0]] = value_map.get(copied, copied)
    return copies


def _copy(node: ir.Node, value_map: dict[ir.Value, ir.Value], names: Names, suffix: str, named: bool) -> ir.Node:
    attributes: list[ir.Attr] = []
    for attribute in node.attributes.values():
        if attribute.is_ref():
            attributes.append(attribute)
        elif attribute.type == ir.AttributeType.GRAPH:
            attributes.append(ir.AttrGraph(attribute.name, _copy_graph(attribute.as_graph(), value_map, names, suffix, named)))
        elif attribute.type == ir.AttributeType.GRAPHS:
            graphs = [_copy_graph(graph, value_map, names, suffix, named) for graph in attribute.as_graphs()]
            attributes.append(ir.AttrGraphs(attribute.name, graphs))
        else:
            attributes.append(attribute)
    outputs = [_like(value, names, suffix, named) for value in node.outputs]
    copy = ir.Node(
        node.domain,
        node.op_type,
        [None if value is None else value_map.get(value, value) for value in node.inputs],
        attributes,
        overload=node.overload,
        outputs=outputs,
        version=node.version,
        name=names.fresh(f"{node.name or node.op_type}_{suffix}"),
        doc_string=node.doc_string,
        metadata_props=dict(node.metadata_props),
    )
    carry(node, copy)
    value_map.update(zip(node.outputs, outputs, strict=True))
    return copy


def _copy_graph(graph: ir.Graph, around: Mapping[ir.Value, ir.Value], names: Names, suffix: str, named: bool) -> ir.Graph:
    value_map = dict(around)
    inputs = [_like(value, names, suffix, named) for value in graph.inputs]
    value_map.update(zip(graph.inputs, inputs, strict=True))
    weights = []
    for weight in graph.initializers.values():
        if weight not in value_map:
            copy = _like(weight, names, suffix, named)
            copy.const_value = weight.const_value
            value_map[weight] = copy
        else:
            value_map[weight].const_value = weight.const_value
        weights.append(value_map[weight])
    nodes = [_copy(node, value_map, names, suffix, named) for node in graph]
    outputs = [value_map.get(value, value) for value in graph.outputs]
    copied = ir.Graph(inputs, outputs, nodes=nodes, initializers=weights, name=names.fresh(f"{graph.name or 'body'}_{suffix}"))
    copied.metadata_props.update(graph.metadata_props)
    carry(graph, copied)
    return copied


def _like(value: ir.Value, names: Names, suffix: str, named: bool) -> ir.Value:
    shape = value.shape if named else without_names(value.shape)
    shape = None if shape is None else ir.Shape(shape.dims)
    return ir.Value(name=names.fresh(f"{value.name}_{suffix}") if value.name else "", type=value.type, shape=shape)
