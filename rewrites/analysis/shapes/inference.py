"""Types and shapes of all values of a model, by onnx's own inference, once before any rule looks at it."""

import functools
from collections.abc import Sequence, Set

import onnx_ir as ir

from rewrites.analysis.shapes.long_vectors import has_long_vectors
from rewrites.analysis.shapes.loop_shapes import find_open_shapes
from rewrites.analysis.shapes.onnx_inference import infer_by_onnx
from rewrites.analysis.shapes.sizes_without_steps import declared_results, note_sizes_without_steps
from rewrites.analysis.shapes.stale import forget_stale_shapes
from rewrites.graph.dims import forgotten, varies
from rewrites.graph.node_inference import infer_node
from rewrites.graph.walk import all_nodes, inner_values

__all__ = ["infer_model"]

_MAKE_MAPS = frozenset({"ZipMap"})
_MAKE_SEQUENCES = frozenset(
    ["SequenceEmpty", "SequenceConstruct", "SequenceInsert", "SequenceErase", "SequenceMap", "SplitToSequence", "Optional"]
)


def infer_model(model: ir.Model) -> None:
    """Infer types and shapes all over ``model``, bodies included, keeping what was declared unless the operators contradict it.

    onnx's engine is used because it alone is right on Scan-8 and Scan-9+ bodies, untyped bodies and captures.
    """
    mapped = _take_out_maps(model.graph)
    untyped = [value for node in all_nodes(model.graph) for value in node.outputs if value.type is None]
    data_prop = not has_long_vectors(model.graph, model.functions)
    opset, declared = model.opset_imports.get("", 1), declared_results(model.graph)

    def infer(proven: bool) -> Set[ir.Value]:
        _forget_variations(model.graph)
        infer_by_onnx(model, data_prop=data_prop)
        note_sizes_without_steps(model.graph, declared)
        _forget_types_of_sequences(model.graph, set(untyped))
        one = functools.partial(infer_node, opsets=model.opset_imports, ir_version=model.ir_version)
        return find_open_shapes(model.graph, opset, one, proven=proven)

    if forget_stale_shapes(model.graph, functools.partial(infer, True)):
        infer(False)
    _forget_variations(model.graph)
    _put_back_maps(model.graph, *mapped)


def _forget_variations(graph: ir.Graph) -> None:
    """Leave out the names of dimensions that vary: another search would give them to other dimensions."""
    for value in inner_values(graph):
        value.shape = forgotten(value.shape, varies)


def _take_out_maps(graph: ir.Graph) -> tuple[list[ir.Node], list[ir.Value]]:
    """Take the nodes out that give maps, which the IR has no type for, and the outputs they give."""
    nodes = [node for node in graph if node.op_type in _MAKE_MAPS and not any(value.uses() for value in node.outputs)]
    outputs = list(graph.outputs)
    made = {value for node in nodes for value in node.outputs}
    graph.outputs[:] = [value for value in outputs if value not in made]
    graph.remove(nodes)
    return nodes, outputs


def _put_back_maps(graph: ir.Graph, nodes: list[ir.Node], outputs: list[ir.Value]) -> None:
    graph.extend(nodes)
    graph.outputs[:] = outputs


def _forget_types_of_sequences(graph: ir.Graph, untyped: set[ir.Value]) -> None:
    """Take back the tensor types that onnx_ir's pass gives to sequences and optionals which had no declared type.

    onnxruntime refuses a model that says "tensor" of a sequence; without a word it infers the type itself.
    """
    sequences: set[ir.Value] = set()
    for node in all_nodes(graph):
        results: Sequence[ir.Value] = ()
        if node.op_type in _MAKE_SEQUENCES or (node.op_type == "Identity" and _is_no_tensor(node.inputs[0], sequences)):
            results = node.outputs
        elif node.op_type in ("If", "Loop", "OptionalGetElement"):
            results = [value for value in node.outputs if _may_be_sequence(node)]
        sequences.update(results)
    for value in sequences & untyped:
        value.type, value.shape = None, None


def _is_no_tensor(value: ir.Value | None, sequences: Set[ir.Value]) -> bool:
    return value is not None and (value in sequences or isinstance(value.type, ir.SequenceType | ir.OptionalType))


def _may_be_sequence(node: ir.Node) -> bool:
    bodies = [attribute.as_graph() for attribute in node.attributes.values() if attribute.type == ir.AttributeType.GRAPH]
    inner = [value for body in bodies for value in body.outputs]
    return not bodies or not all(isinstance(value.type, ir.TensorType) for value in inner)
