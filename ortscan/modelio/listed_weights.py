"""Remove weights from the input lists of their graphs, so that rules see constants.

    IR 3  g(x, W) {W = ...}  ->  IR 4  g(x) {W = ...}  ->  (rewritten, returned)  IR 3  g(x, W) {W = ...}

In IR 3 every initializer must be listed as an input, although it is a constant. From IR 4 on, a listed initializer is an input with
a default. onnxruntime neither folds nor packs such a default, so a chain of MatMuls runs ten times slower. The weights are
therefore removed from the list of inputs. At the end, weights that a node still needs are listed again. New constants of the main
graph become Constant nodes, so that the list does not grow. Before opset 9, Constant supports only floats, so other constants are
listed.

Bodies and branches may list their weights as inputs too. Such a weight is always a constant, because no node can pass another value
for it. onnxruntime accepts these lists in every IR version and in any order. It passes operands only to the inputs without an
initializer. tf2onnx writes such bodies in IR 4 too. At the end, the weights of bodies and branches are listed again only in IR 3.

Quantized weights that a body lists are moved out of the body together with their DequantizeLinear. If they were only removed from
the list, onnxruntime would fuse the DequantizeLinear with the MatMul that reads it. The fused node rounds the other operand of
the MatMul, ignores a zero point from outside the body, and rejects weights from outside the body.
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.graph.names import Names
from rewrites.graph.replace import dequantize_outside, lift_initializers
from rewrites.graph.walk import inner_graphs

__all__ = ["ListedWeights", "list_weights", "unlist_weights"]

_LISTING_IR = 3
_PLAIN_IR = 4
_CONSTANT_OF_ANY_TYPE = 9
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE)


@dataclass(frozen=True)
class ListedWeights:
    """The names of the inputs (including weights) and of the initializers of a model of IR version 3."""

    inputs: tuple[str, ...]
    initializers: frozenset[str]


def unlist_weights(model: ir.Model) -> ListedWeights | None:
    """Remove the weights from the input lists of all bodies and branches, in place.

    In IR version 3, also remove the weights from the inputs of the model, and return the old lists. Otherwise return None.
    """
    bodies = list(inner_graphs(model.graph))
    quantized = [body for body in bodies if any(map(_is_quantized, _listed(body)))]
    for body in bodies:
        _unlist(body)
    if quantized:
        names = Names(model)
        for body in quantized:
            lift_initializers(body, model.graph, names)
            dequantize_outside(body, model.graph, names)
    if model.ir_version != _LISTING_IR:
        return None
    listed = ListedWeights(tuple(value.name or "" for value in model.graph.inputs), frozenset(model.graph.initializers))
    _unlist(model.graph)
    model.ir_version = _PLAIN_IR
    return listed


def _listed(graph: ir.Graph) -> list[ir.Value]:
    return [value for value in graph.inputs if value.is_initializer()]


def _is_quantized(value: ir.Value) -> bool:
    return any(node.op_type == "DequantizeLinear" for node, _ in value.uses())


def _unlist(graph: ir.Graph) -> None:
    for value in _listed(graph):
        graph.inputs.remove(value)
        _type_by_tensor(value)


def list_weights(model: ir.Model, before: ListedWeights) -> None:
    """Undo ``unlist_weights``: list the weights of ``model`` as inputs again, in place.

    ``before`` is the result of ``unlist_weights``. If the IR version of ``model`` was raised meanwhile, do nothing.
    """
    if model.ir_version != _PLAIN_IR:
        return
    graph = model.graph
    for value in [value for name, value in graph.initializers.items() if name not in before.initializers]:
        if value.dtype in _FLOATS or model.opset_imports.get("", 1) >= _CONSTANT_OF_ANY_TYPE:
            _become_node(graph, value)
    weights = dict(graph.initializers)
    real = {value.name or "": value for value in graph.inputs}
    in_order = [weights.get(name) or real.get(name) for name in before.inputs]
    new = [value for name, value in weights.items() if name not in before.initializers]
    graph.inputs.clear()
    graph.inputs.extend([value for value in in_order if value is not None] + new)
    for body in inner_graphs(graph):
        body.inputs.extend([value for value in body.initializers.values() if not value.is_graph_input()])
    for each in model.graphs():
        for value in each.initializers.values():
            _type_by_tensor(value)
    model.ir_version = _LISTING_IR


def _type_by_tensor(value: ir.Value) -> None:
    """If ``value`` has no declared type or shape, take it from the tensor of ``value``."""
    tensor = value.const_value
    if tensor is not None and value.type is None:
        value.type = ir.TensorType(tensor.dtype)
    if tensor is not None and value.shape is None:
        value.shape = ir.Shape(tensor.shape.numpy())


def _become_node(graph: ir.Graph, value: ir.Value) -> None:
    tensor = value.const_value
    assert tensor is not None
    graph.initializers.pop(value.name or "")
    output = ir.Value(name=value.name, type=value.type, shape=value.shape, doc_string=value.doc_string)
    node = ir.node("Constant", [], attributes={"value": tensor}, outputs=[output])
    value.replace_all_uses_with(output, replace_graph_outputs=True)
    if len(graph):
        graph.insert_before(graph[0], node)
    else:
        graph.append(node)
