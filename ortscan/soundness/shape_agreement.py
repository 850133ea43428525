"""Whether the operators of two models, as onnx infers them, tell the same type and shape of each value that both have.

Asked with a size for every free dimension, since a name says nothing where it does not come out: a row taken out of [3, 1, 4] and
squeezed has another rank with a batch of 1. What onnx cannot infer of either model is not compared.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, count, repeat

import onnx
from onnx.external_data_helper import uses_external_data

from ortscan.base.proto_graphs import all_graphs
from ortscan.running.graph_index import all_nodes
from ortscan.running.joined_vectors import has_long_vectors
from rewrites.analysis.shapes.shown_scopes import give_own_names, given_to, show_captured_constants
from rewrites.analysis.shapes.unknown_bounds import hide_unknown_bounds
from rewrites.base.errors import is_raised_by

__all__ = ["disagreement"]

_FIRST, _STEP = 11, 12
"""Free dimensions get 11, 23, 35, …: all different, none a divisor of another, and unlike the sizes that models have."""


def disagreement(before: onnx.ModelProto, after: onnx.ModelProto) -> str | None:
    """Return what the two say differently of an output, or of a value between, in one line, or None.

    ``before`` must be sound at the sizes it is asked at: where inference finds contradictions in it, nothing is compared.
    """
    old, new = _bare(before, after.graph.input), _bare(after)
    free = [_free_dims(old.graph), _free_dims(new.graph)]
    for sizes in (lambda: iter(count(_FIRST, _STEP)), lambda: repeat(1)):
        for dims in free:
            _choose(dims, sizes())
        was = _inferred(old, strict=True)
        now = _inferred(new, strict=False) if was is not None else None
        said = next(_contradictions(was.graph, now.graph), None) if was is not None and now is not None else None
        if was is not None and said is not None and not _spreads_in_vain(was):
            return said
        if not any(free):
            break
    return None


def _contradictions(before: onnx.GraphProto, after: onnx.GraphProto) -> Iterator[str]:
    was = _types(before)
    for info in chain(after.output, after.value_info):
        said = _contradiction(was[info.name], info.type) if info.name in was and info.type.HasField("tensor_type") else None
        if said is not None:
            yield f"'{info.name}' {said}"


def _types(graph: onnx.GraphProto) -> dict[str, onnx.TypeProto]:
    return {info.name: info.type for info in chain(graph.output, graph.value_info) if info.type.HasField("tensor_type")}


def _contradiction(was: onnx.TypeProto, now: onnx.TypeProto) -> str | None:
    if was == now:
        return None
    type_was, type_now = was.tensor_type.elem_type, now.tensor_type.elem_type
    if type_was and type_now and type_was != type_now:
        names = [onnx.TensorProto.DataType.Name(one).lower() for one in (type_was, type_now)]
        return f"is of {names[0]} in the original and of {names[1]} in the result"
    old, new = _dims(was.tensor_type), _dims(now.tensor_type)
    if old is None or new is None:
        return None
    if len(old) != len(new) or any(None not in (one, other) and one != other for one, other in zip(old, new, strict=True)):
        return f"has the shape {_shown(old)} in the original and {_shown(new)} in the result"
    return None


def _shown(dims: Iterable[int | None]) -> str:
    return f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"


def _bare(model: onnx.ModelProto, inputs: Iterable[onnx.ValueInfoProto] = ()) -> onnx.ModelProto:
    """Return a copy that declares its inputs only, as ``inputs`` do where given: those of a result may have sizes built in."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model)
    declared = {info.name: info for info in inputs}
    for info in proto.graph.input:
        if info.name in declared:
            info.CopyFrom(declared[info.name])
    for info in proto.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    proto.graph.ClearField("value_info")
    show_captured_constants(proto.graph, given_to(proto))
    hide_unknown_bounds(proto)
    give_own_names(proto)
    return proto


def _free_dims(graph: onnx.GraphProto) -> list[tuple[str, onnx.TensorShapeProto.Dimension]]:
    """Return the free dimensions of the inputs; those of one name have one size."""
    dims = [(f"{info.name}[{axis}]", dim) for info in graph.input for axis, dim in enumerate(info.type.tensor_type.shape.dim)]
    return [(dim.dim_param or place, dim) for place, dim in dims if not dim.HasField("dim_value")]


def _choose(dims: Iterable[tuple[str, onnx.TensorShapeProto.Dimension]], sizes: Iterator[int]) -> None:
    chosen = dict[str, int]()
    for name, dim in dims:
        dim.dim_value = chosen[name] if name in chosen else chosen.setdefault(name, next(sizes))


def _inferred(model: onnx.ModelProto, strict: bool) -> onnx.ModelProto | None:
    follow = not has_long_vectors(model)
    try:
        return onnx.shape_inference.infer_shapes(model, check_type=strict, strict_mode=strict, data_prop=follow)
    except MemoryError:
        return None
    except Exception as error:
        if not is_raised_by(error, "onnx"):
            raise
        return None


def _spreads_in_vain(model: onnx.ModelProto) -> bool:
    """Whether an Expand cannot do what it is told at these sizes: onnx makes [11, 3] of [11, 3] and a shape of [2, 3]."""
    shapes = dict[str, list[int | None] | None]()
    told = dict[str, onnx.TensorProto]()
    for graph in all_graphs(model):
        infos = chain(graph.input, graph.output, graph.value_info)
        shapes |= {info.name: _dims(info.type.tensor_type) for info in infos}
        told |= {tensor.name: tensor for tensor in graph.initializer if not uses_external_data(tensor)}
    for node, _ in all_nodes(model):
        if node.op_type == "Expand" and node.input[1] in told:
            sizes = onnx.numpy_helper.to_array(told[node.input[1]]).tolist()
            pairs = zip(reversed(shapes.get(node.input[0]) or []), reversed(sizes), strict=False)
            if any(one is not None and one != other and 1 not in (one, other) for one, other in pairs):
                return True
    return False


def _dims(tensor: onnx.TypeProto.Tensor) -> list[int | None] | None:
    if not tensor.HasField("shape"):
        return None
    return [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
