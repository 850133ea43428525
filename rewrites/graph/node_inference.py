"""Infers the types and shapes of the results of single nodes.

onnx's schemas infer standard operators, and ``infer_contrib`` infers some operators of onnxruntime (com.microsoft). A rule may also
infer shapes to find out whether it applies. ``restore_shapes`` then removes these shapes. If the patch of the rule is applied,
``put_shapes`` sets them.

Works around ONNX-AXES-WITHOUT-SHAPE.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from functools import cache, partial

import onnx
import onnx_ir as ir

from rewrites.graph.dims import refined, without_names
from rewrites.graph.values import const_array, dim_of
from rewrites.graph.walk import node_graphs

__all__ = [
    "LearnedShapes",
    "contradicts",
    "infer_contrib",
    "infer_node",
    "is_inferred_here",
    "learn_shapes",
    "put_shapes",
    "shapes_kept",
    "shapes_of",
    "restore_shapes",
    "infer_afresh",
]


def infer_node(node: ir.Node, opsets: dict[str, int], ir_version: int) -> None:
    """Set the missing types and shapes of the outputs of ``node`` if they can be inferred."""
    if is_inferred_here(node):
        infer_contrib(node)
        return
    try:
        protos = _found(node, opsets, ir_version)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError):
        return
    for value in node.outputs:
        proto = protos.get(value.name or "")
        if proto is not None and value.type is None:
            value.type = ir.serde.deserialize_type_proto_for_type(proto)
        if proto is not None and value.shape is None:
            value.shape = ir.serde.deserialize_type_proto_for_shape(proto)


def contradicts(node: ir.Node, opsets: dict[str, int], ir_version: int) -> bool:
    """Return True if the operator of ``node`` does not allow the known sizes of its operands.

    Return False for nodes with nested graphs, which are not checked.
    """
    if node_graphs(node):
        return False
    try:
        _found(node, opsets, ir_version)
    except onnx.shape_inference.InferenceError as error:
        return "ShapeInferenceError" in str(error)
    except onnx.checker.ValidationError:
        return False
    return False


_DATA_BYTES = 4096

_TAKEN_FOR_ABSENT = {"Pad": (3,), "Slice": (3, 4)}
"""For each operator, the operands that onnx treats as absent if their shapes are unknown."""


def _found(node: ir.Node, opsets: dict[str, int], ir_version: int) -> dict[str, onnx.TypeProto]:
    schema = _schema(node.op_type, node.domain, opsets.get(node.domain, 1))
    if schema is None or any(_is_unshaped(node, index) for index in _TAKEN_FOR_ABSENT.get(node.op_type, ())):
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


def _is_unshaped(node: ir.Node, index: int) -> bool:
    value = node.inputs[index] if index < len(node.inputs) else None
    return value is not None and value.shape is None


@cache
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


_LIKE_FIRST = frozenset(
    [
        *("BiasGelu", "FastGelu", "Gelu", "Inverse", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QuickGelu"),
        *("RotaryEmbedding", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    ]
)
"""Operators whose first result has the type and shape of the first operand."""


def is_inferred_here(node: ir.Node) -> bool:
    """Return True if ``infer_contrib`` can infer the results of ``node``."""
    return node.domain == "com.microsoft" and (node.op_type in _LIKE_FIRST or node.op_type == "DynamicQuantizeLSTM")


def infer_contrib(node: ir.Node) -> None:
    """Set the missing types and shapes of the outputs of an operator of com.microsoft."""
    data = node.inputs[0] if node.inputs else None
    if data is None or not node.outputs:
        return
    if node.op_type in _LIKE_FIRST:
        _tell(node.outputs[0], data.type, data.shape)
        return
    hidden, ways = node.attributes.get_int("hidden_size", None), node.attributes.get_string("direction", "forward")
    state = [2 if ways == "bidirectional" else 1, dim_of(data, 1), hidden]
    for position, value in enumerate(node.outputs):
        _tell(value, ir.TensorType(ir.DataType.FLOAT), ir.Shape(state if position else [dim_of(data, 0), *state]))


def _tell(value: ir.Value, kind: ir.TypeProtocol | None, shape: ir.Shape | None) -> None:
    value.type = kind if value.type is None else value.type
    if shape is not None:
        value.shape = refined(value.shape, ir.Shape(shape.dims))


LearnedShapes = Mapping[ir.Value, ir.Shape | None]


def shapes_of(values: Iterable[ir.Value]) -> dict[ir.Value, ir.Shape | None]:
    """Return the shapes that ``values`` have now."""
    return {value: value.shape for value in values}


def restore_shapes(before: LearnedShapes) -> dict[ir.Value, ir.Shape | None]:
    """Set the shape of each value to its shape in ``before``.

    Return the shapes that were removed by this: for each value whose shape changed, its shape at the time of the call.
    """
    learned = {value: value.shape for value, shape in before.items() if value.shape is not shape}
    put_shapes({value: before[value] for value in learned})
    return learned


def put_shapes(shapes: LearnedShapes) -> None:
    """Set the shape of each value in ``shapes``, which maps values to shapes."""
    for value, shape in shapes.items():
        value.shape = shape


@contextmanager
def shapes_kept(values: Iterable[ir.Value]) -> Iterator[dict[ir.Value, ir.Shape | None]]:
    """Save the shapes of ``values``, and restore these shapes at the end of the context.

    Yield the saved shapes by value. The caller may add other values with shapes; these shapes are set at the end, too.
    """
    before = shapes_of(values)
    try:
        yield before
    finally:
        put_shapes(before)


def infer_afresh(node: ir.Node, infer: Callable[[ir.Node], None]) -> dict[ir.Value, ir.Shape | None]:
    """Infer the shapes of the results of ``node`` as if no result had a shape yet, and return them.

    ``infer``: a function that sets the missing shapes of the results of a node. The shapes in the model do not change.
    """
    with shapes_kept(node.outputs):
        put_shapes(dict.fromkeys(node.outputs))
        infer(node)
        return shapes_of(node.outputs)


def learn_shapes(body: ir.Graph, changed: Set[ir.Node], opsets: dict[str, int], ir_version: int) -> None:
    """Repeat shape inference for ``changed`` nodes of ``body`` that have a result of incomplete shape.

    If the shape of a result changes, repeat the inference for the nodes that read the result, too. Only sizes that are numbers are
    added to shapes.
    """
    waiting = set(changed)
    for node in body if waiting else ():
        if node not in waiting or not any(_is_open(value) for value in node.outputs):
            continue
        for value, learned in infer_afresh(node, partial(infer_node, opsets=opsets, ir_version=ir_version)).items():
            shape = refined(without_names(value.shape), without_names(learned), value.shape)
            if value.shape != shape:
                value.shape = shape
                waiting.update(user for user, _ in value.uses())


def _is_open(value: ir.Value) -> bool:
    return value.shape is None or any(not isinstance(dim, int) for dim in value.shape.dims)
