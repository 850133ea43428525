"""Types and shapes of values, by onnx's own inference.

The whole model is inferred once, before any rule looks at it; nodes built by rules are inferred one by one as they are made.
"""

import functools
from collections.abc import Sequence, Set

import onnx
import onnx_ir as ir

from rewrites.contrib_shapes import infer_contrib, is_like_first
from rewrites.long_vectors import has_long_vectors
from rewrites.loop_shapes import find_open_shapes
from rewrites.onnx_inference import infer_by_onnx
from rewrites.shape_relations import forget_variations
from rewrites.sizes_without_steps import declared_results, note_sizes_without_steps
from rewrites.stale_shapes import forget_stale_shapes
from rewrites.values import const_array
from rewrites.walk import all_nodes, node_graphs

__all__ = ["contradicts", "infer_model", "infer_node", "learn_shapes"]

_DATA_BYTES = 4096
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
        forget_variations(model.graph)
        infer_by_onnx(model, data_prop=data_prop)
        note_sizes_without_steps(model.graph, declared)
        _forget_types_of_sequences(model.graph, set(untyped))
        one = functools.partial(infer_node, opsets=model.opset_imports, ir_version=model.ir_version)
        return find_open_shapes(model.graph, opset, one, proven=proven)

    if forget_stale_shapes(model.graph, functools.partial(infer, True)):
        infer(False)
    forget_variations(model.graph)
    _put_back_maps(model.graph, *mapped)


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


def infer_node(node: ir.Node, opsets: dict[str, int], ir_version: int) -> None:
    """Set type and shape of ``node``'s outputs where the operator's schema tells them.

    Outputs keep what they have where onnx knows no such operator, an input has no type, or nothing can be inferred.
    """
    if is_like_first(node):
        infer_contrib(node)
        return
    try:
        found = _found(node, opsets, ir_version)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError):
        return
    for value in node.outputs:
        proto = found.get(value.name or "")
        if proto is not None and value.type is None:
            value.type = ir.serde.deserialize_type_proto_for_type(proto)
        if proto is not None and value.shape is None:
            value.shape = ir.serde.deserialize_type_proto_for_shape(proto)


def contradicts(node: ir.Node, opsets: dict[str, int], ir_version: int) -> bool:
    """Whether ``node``, which holds no graphs, takes no operands of the sizes it is given."""
    if node_graphs(node):
        return False
    try:
        _found(node, opsets, ir_version)
    except onnx.shape_inference.InferenceError as error:
        return "ShapeInferenceError" in str(error)
    except onnx.checker.ValidationError:
        return False
    return False


def _found(node: ir.Node, opsets: dict[str, int], ir_version: int) -> dict[str, onnx.TypeProto]:
    schema = _schema(node.op_type, node.domain, opsets.get(node.domain, 1))
    if schema is None:
        return {}
    types, data = {}, {}
    for value in node.inputs:
        if value is None or value.name is None:
            continue
        if value.type is None:
            return {}
        types[value.name] = _type_proto(value)
        array = const_array(value, limit=_DATA_BYTES)
        if array is not None and array.dtype.kind in "iu":
            data[value.name] = onnx.numpy_helper.from_array(array, value.name)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return onnx.shape_inference.infer_node_outputs(
        schema, ir.serde.serialize_node(node), types, data, opset_imports=imports, ir_version=ir_version
    )


def learn_shapes(body: ir.Graph, changed: Set[ir.Node], opsets: dict[str, int], ir_version: int) -> None:
    """Infer again what the nodes of ``body`` in ``changed``, and what depends on them, left open; sizes that are numbers count."""
    waiting = set(changed)
    for node in body if waiting else ():
        if node not in waiting or not any(_is_open(value) for value in node.outputs):
            continue
        before = [value.shape for value in node.outputs]
        for value in node.outputs:
            value.shape = None
        infer_node(node, opsets, ir_version)
        for value, shape in zip(node.outputs, before, strict=True):
            value.shape = _with_numbers(shape, value.shape)
            if value.shape != shape:
                waiting.update(user for user, _ in value.uses())


def _is_open(value: ir.Value) -> bool:
    return value.shape is None or any(not isinstance(dim, int) for dim in value.shape.dims)


def _with_numbers(shape: ir.Shape | None, found: ir.Shape | None) -> ir.Shape | None:
    """Give ``shape`` with the numbers of ``found`` where it has none."""
    if found is None or (shape is not None and len(shape) != len(found)):
        return shape
    dims = [None] * len(found) if shape is None else list(shape.dims)
    numbers = [new if isinstance(new, int) and not isinstance(old, int) else old for old, new in zip(dims, found.dims, strict=True)]
    return shape if shape is not None and numbers == list(shape.dims) else ir.Shape(numbers)


@functools.cache
def _schema(op_type: str, domain: str, version: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


def _type_proto(value: ir.Value) -> onnx.TypeProto:
    proto = onnx.TypeProto()
    assert value.type is not None
    ir.serde.serialize_type_into(proto, value.type)
    if value.shape is not None:
        ir.serde.serialize_shape_into(proto, value.shape)
    return proto
