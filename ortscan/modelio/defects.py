"""The gate: every structural defect of a model is found here, when it is taken in, and is one sentence that names what and where.

What is behind the gate may rely on it: attributes are of the kinds that schemas say, tensors have the bytes they need, all types
are defined, no name stands for two values, and no Scan contradicts what is declared around it.
"""

from collections.abc import Iterator, Mapping

import onnx
import onnx_ir as ir

from ortscan.modelio.node_defects import defect_of_node
from ortscan.modelio.protos import DEEPEST, bodies_in
from ortscan.modelio.tensor_defects import defect_of_tensor, defect_of_type
from rewrites.base.errors import UnsupportedModel
from rewrites.base.plain_text import quoted
from rewrites.loops import refuse_contradictions

__all__ = ["refuse_defects", "refuse_defects_of_data", "refuse_depth"]

_NEWEST = (1 << 31) - 1


def refuse_defects_of_data(proto: onnx.ModelProto, name: str) -> None:
    """Raise UnsupportedModel where tensors, types or imports of a serialised model are none."""
    for imports in (proto.opset_import, *(function.opset_import for function in proto.functions)):
        for entry in imports:
            if not 1 <= entry.version < _NEWEST:
                raise UnsupportedModel(f"{name} imports version {entry.version} of the operator set {quoted(entry.domain)}.")
    for body, where in bodies_in(proto):
        if isinstance(body, onnx.GraphProto):
            for tensor in body.initializer:
                if defect := defect_of_tensor(tensor):
                    raise UnsupportedModel(f"{name}: initializer {quoted(tensor.name)} in {where} {defect}.")
            for infos in (body.input, body.output, body.value_info):
                for info in infos:
                    if defect := defect_of_type(info.type):
                        raise UnsupportedModel(f"{name}: {quoted(info.name)} in {where} {defect}.")
        for node in body.node:
            for attribute in node.attribute:
                if defect := _defect_of_attribute(attribute):
                    raise UnsupportedModel(f"{name}: {attribute.name} of {node.op_type} {quoted(node.name)} in {where} {defect}.")


def _defect_of_attribute(attribute: onnx.AttributeProto) -> str | None:
    if attribute.ref_attr_name:
        return None
    kind = attribute.type
    if kind == onnx.AttributeProto.TENSOR:
        return defect_of_tensor(attribute.t)
    if kind == onnx.AttributeProto.TENSORS:
        return next((defect for tensor in attribute.tensors if (defect := defect_of_tensor(tensor))), None)
    if kind == onnx.AttributeProto.TYPE_PROTO:
        return defect_of_type(attribute.tp)
    if kind == onnx.AttributeProto.TYPE_PROTOS:
        return next((defect for one in attribute.type_protos if (defect := defect_of_type(one))), None)
    return None


def refuse_depth(model: ir.Model, name: str) -> None:
    """Raise UnsupportedModel where graphs are nested deeper than a file can hold."""
    waiting: list[tuple[ir.Graph | ir.Function, int]] = [(model.graph, 0), *((one, 0) for one in model.functions.values())]
    while waiting:
        graph, depth = waiting.pop()
        if depth > DEEPEST:
            raise UnsupportedModel(f"The graphs of {name} are nested more than {DEEPEST} deep, deeper than a file can hold.")
        waiting.extend((inner, depth + 1) for node in graph for inner in _graphs_of(node))


def refuse_defects(model: ir.Model, name: str) -> None:
    """Raise UnsupportedModel where nodes are not what their operators ask for, or a name stands for two values of a graph.

    Raises MalformedLoop where a Scan or Loop outside functions is none.
    """
    if not model.graph.outputs:
        raise UnsupportedModel(f"{name} has no outputs, so nothing in it is computed.")
    functions = {(domain, op_type) for domain, op_type, _ in model.functions}
    for body, opsets, in_function in [
        (model.graph, model.opset_imports, False),
        *((function.graph, function.opset_imports, True) for function in model.functions.values()),
    ]:
        _refuse_defects_in(body, opsets, in_function, functions, name)


def _refuse_defects_in(
    graph: ir.Graph, opsets: Mapping[str, int], in_function: bool, functions: set[tuple[str, str]], name: str
) -> None:
    given = {value.name for value in graph.inputs} | graph.initializers.keys()
    for node in graph:
        for value in node.outputs:
            if value.name and value.name in given:
                raise UnsupportedModel(f"{name}: two values of the graph {quoted(graph.name)} have the name {quoted(value.name)}.")
            given.add(value.name)
        defect = None
        if (node.domain, node.op_type) not in functions:
            defect = defect_of_node(node, opsets, in_function=in_function)
        if defect is not None:
            raise UnsupportedModel(f"{name} is not a valid model: {defect}.")
        for inner in _graphs_of(node):
            _refuse_defects_in(inner, opsets, in_function, functions, name)
        if node.op_type == "Scan" and not in_function and node.domain == "":
            refuse_contradictions(node, opsets.get("", 1))


def _graphs_of(node: ir.Node) -> Iterator[ir.Graph]:
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH and not attribute.is_ref():
            yield attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS and not attribute.is_ref():
            yield from attribute.as_graphs()
