"""How long vectors may come to be in a ModelProto: see ``rewrites.analysis.shapes.long_vectors``.

Works round ORT-FOLDED-JOINS and ONNX-LONG-VECTORS.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping

import onnx
from onnx.external_data_helper import uses_external_data

from ortscan.base.proto_graphs import all_graphs, bodies_of
from ortscan.running.known_lengths import known_lengths
from rewrites.analysis.shapes.long_vectors import GROWING, LONGEST, Measure, Part, Step, Vectors, largest_number

__all__ = ["endless_joins", "has_long_vectors"]

_MOST_JOINED = 1 << 22
_UNIT = 1 << 12
"""So many elements are one of those, where it is known how many there are."""
_MOST_ELEMENTS = 512
_GROWING = GROWING | {"Constant"}


def endless_joins(proto: onnx.ModelProto) -> list[str]:
    """Describe the first join at the end of a chain that doubles again and again, which onnxruntime computes to load the model."""
    nodes = (node for graph in (*all_graphs(proto), *proto.functions) for node in graph.node)
    if not any(node.op_type in ("Concat", "StringConcat") for node in nodes):
        return []
    offender = _first_endless(proto, {})
    if offender is not None:
        offender = _first_endless(proto, {name: Measure(max(1, many // _UNIT)) for name, many in known_lengths(proto).items()})
    if offender is None:
        return []
    return [f"{offender.operator} '{offender.outputs[0]}' joins more than {_MOST_JOINED} values of values"]


def _first_endless(proto: onnx.ModelProto, known: Mapping[Hashable, Measure]) -> Step | None:
    vectors = Vectors(lambda _: Measure(), _functions(proto), _MOST_JOINED, joined_only=True, known=known)
    return vectors.offender if vectors.too_long(_part(proto.graph)) else None


def has_long_vectors(proto: onnx.ModelProto) -> bool:
    """Whether a vector may be so long that onnx should not follow what it holds, at 200 bytes for each element."""
    graphs = [*all_graphs(proto), *proto.functions]
    infos = [info for graph in all_graphs(proto) for info in (*graph.input, *graph.output, *graph.value_info)]
    if not any(node.op_type in _GROWING for graph in graphs for node in graph.node) and all(
        _length(info) <= LONGEST for info in infos
    ):
        return any(max(tensor.dims, default=1) > LONGEST for graph in all_graphs(proto) for tensor in graph.initializer)
    own = {info.name: Measure(_length(info)) for info in infos}
    own |= {tensor.name: _of_tensor(tensor) for graph in all_graphs(proto) for tensor in graph.initializer}

    def measure(name: Hashable) -> Measure:
        return own.get(str(name), Measure())

    return Vectors(measure, _functions(proto), LONGEST).too_long(_part(proto.graph))


def _functions(proto: onnx.ModelProto) -> Mapping[Hashable, Part]:
    return {
        (function.domain, function.name, function.overload): Part(function.input, list(_steps(function.node)), function.output)
        for function in proto.functions
    }


def _part(graph: onnx.GraphProto) -> Part:
    names = [[info.name for info in infos] for infos in (graph.input, graph.output)]
    return Part(names[0], list(_steps(graph.node)), names[1])


def _steps(nodes: Iterable[onnx.NodeProto]) -> Iterator[Step]:
    for node in nodes:
        plain = node.domain in ("", "ai.onnx")
        given = Measure()
        for attribute in node.attribute if plain and node.op_type in ("Constant", "ConstantOfShape") else ():
            if attribute.HasField("t"):
                given = _of_tensor(attribute.t)
            elif attribute.name in ("value_int", "value_ints"):
                given = Measure(len(attribute.ints) or 1, max(1, abs(attribute.i), *map(abs, attribute.ints)))
        operator = node.op_type if plain else (node.domain, node.op_type, node.overload)
        yield Step(operator, node.input, node.output, [_part(body) for body in bodies_of(node)], given)


def _length(info: onnx.ValueInfoProto) -> int:
    sizes: list[int] = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
    return max([1, *sizes])


def _of_tensor(tensor: onnx.TensorProto) -> Measure:
    length = max([1, *tensor.dims])
    if length > _MOST_ELEMENTS or uses_external_data(tensor) or len(tensor.dims) > 1:
        return Measure(length)
    return Measure(length, largest_number(onnx.numpy_helper.to_array(tensor)))
