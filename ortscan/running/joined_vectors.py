"""Find vectors in a ModelProto that may become very long, for example by repeated doubling.

onnxruntime computes such vectors when it loads the model, and onnx computes their elements when it infers shapes. The module
``rewrites.analysis.shapes.long_vectors`` computes upper bounds of the lengths.

Works around ORT-FOLDED-JOINS and ONNX-LONG-VECTORS.
"""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Set

import onnx
from onnx.external_data_helper import uses_external_data

from ortscan.base.proto_graphs import all_graphs, bodies_of
from ortscan.ort.model_errors import error_of_onnx, without_weights
from rewrites.analysis.shapes.long_vectors import GROWING, LONGEST, Part, SizeBounds, VectorBounds, VectorNode, largest_number

__all__ = ["has_long_vectors", "oversized_concats"]

_MOST_JOINED = 1 << 22
_UNIT = 1 << 12
"""The unit in which known numbers of elements are counted."""
_MOST_ELEMENTS = 512
_GROWING = GROWING | {"Constant"}


def oversized_concats(proto: onnx.ModelProto) -> list[str]:
    """Return a list with a description of the first Concat or StringConcat whose result is too long.

    The list is empty if no result is too long. A result may be too long at the end of a chain in which each Concat doubles the
    length of a constant. onnxruntime would compute this chain when it loads the model.
    """
    nodes = (node for graph in (*all_graphs(proto), *proto.functions) for node in graph.node)
    if not any(node.op_type in ("Concat", "StringConcat") for node in nodes):
        return []
    offender = _first_oversized(proto, {})
    if offender is not None:
        offender = _first_oversized(
            proto, {name: SizeBounds(max(1, many // _UNIT)) for name, many in _known_lengths(proto).items()}
        )
    if offender is None:
        return []
    return [f"{offender.operator} '{offender.outputs[0]}' joins more than {_MOST_JOINED} elements"]


def _first_oversized(proto: onnx.ModelProto, known: Mapping[Hashable, SizeBounds]) -> VectorNode | None:
    vectors = VectorBounds(lambda _: SizeBounds(), _functions(proto), _MOST_JOINED, only_concat_lengthens=True, better_bounds=known)
    return vectors.offender if vectors.too_long(_part(proto.graph)) else None


def _known_lengths(proto: onnx.ModelProto) -> dict[str, int]:
    """Return the number of elements of each value of the main graph, by name, if onnx can infer its shape.

    If the shapes were unknown, the length of a Concat would be overestimated:

        x [1, 40, 8] -> LSTM -> Slices -> Concat    the result has 40 steps again, not 40 * 40

    A free dimension of an input counts as 1. Declared shapes of inner values and outputs are ignored, because they may be wrong.
    """
    bare = onnx.ModelProto()
    bare.CopyFrom(without_weights(proto))
    for graph in all_graphs(bare):
        graph.ClearField("value_info")
    for info in bare.graph.output:
        info.type.tensor_type.ClearField("shape")
    inferred = onnx.ModelProto()

    def infer() -> None:
        inferred.CopyFrom(onnx.shape_inference.infer_shapes(bare, strict_mode=True, data_prop=False))

    if error_of_onnx(infer) is not None:
        return {}
    free = {dim.dim_param for info in bare.graph.input for dim in info.type.tensor_type.shape.dim if dim.dim_param}
    inner = {name for graph in all_graphs(proto) if graph is not proto.graph for node in graph.node for name in node.output}
    lengths = {info.name: _length_of_type(info.type, free) for info in inferred.graph.value_info if info.name not in inner}
    return {name: length for name, length in lengths.items() if length is not None}


def _length_of_type(declared: onnx.TypeProto, free: Set[str]) -> int | None:
    if not declared.HasField("tensor_type") or not declared.tensor_type.HasField("shape"):
        return None
    dims = declared.tensor_type.shape.dim
    if not all(dim.HasField("dim_value") or dim.dim_param in free for dim in dims):
        return None
    return int(math.prod(dim.dim_value if dim.HasField("dim_value") else 1 for dim in dims))


def has_long_vectors(proto: onnx.ModelProto) -> bool:
    """Return True if the model may have a vector that is too long for onnx's data propagation.

    Data propagation computes the elements of vectors during shape inference, and needs 200 bytes for each element.
    """
    graphs = [*all_graphs(proto), *proto.functions]
    infos = [info for graph in all_graphs(proto) for info in (*graph.input, *graph.output, *graph.value_info)]
    if not any(node.op_type in _GROWING for graph in graphs for node in graph.node) and all(
        _length(info) <= LONGEST for info in infos
    ):
        return any(max(tensor.dims, default=1) > LONGEST for graph in all_graphs(proto) for tensor in graph.initializer)
    own = {info.name: SizeBounds(_length(info)) for info in infos}
    own |= {tensor.name: _measure_tensor(tensor) for graph in all_graphs(proto) for tensor in graph.initializer}

    def measure(name: Hashable) -> SizeBounds:
        return own.get(str(name), SizeBounds())

    return VectorBounds(measure, _functions(proto), LONGEST).too_long(_part(proto.graph))


def _functions(proto: onnx.ModelProto) -> Mapping[Hashable, Part]:
    return {
        (function.domain, function.name, function.overload): Part(function.input, list(_steps(function.node)), function.output)
        for function in proto.functions
    }


def _part(graph: onnx.GraphProto) -> Part:
    names = [[info.name for info in infos] for infos in (graph.input, graph.output)]
    return Part(names[0], list(_steps(graph.node)), names[1])


def _steps(nodes: Iterable[onnx.NodeProto]) -> Iterator[VectorNode]:
    for node in nodes:
        plain = node.domain in ("", "ai.onnx")
        constant = SizeBounds()
        for attribute in node.attribute if plain and node.op_type in ("Constant", "ConstantOfShape") else ():
            if attribute.HasField("t"):
                constant = _measure_tensor(attribute.t)
            elif attribute.name in ("value_int", "value_ints"):
                constant = SizeBounds(len(attribute.ints) or 1, max(1, abs(attribute.i), *map(abs, attribute.ints)))
        operator = node.op_type if plain else (node.domain, node.op_type, node.overload)
        yield VectorNode(operator, node.input, node.output, [_part(body) for body in bodies_of(node)], constant)


def _length(info: onnx.ValueInfoProto) -> int:
    sizes: list[int] = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
    return max([1, *sizes])


def _measure_tensor(tensor: onnx.TensorProto) -> SizeBounds:
    length = max([1, *tensor.dims])
    if length > _MOST_ELEMENTS or uses_external_data(tensor) or len(tensor.dims) > 1:
        return SizeBounds(length)
    return SizeBounds(length, largest_number(onnx.numpy_helper.to_array(tensor)))
