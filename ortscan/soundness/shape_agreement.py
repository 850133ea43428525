"""Compare the types and shapes that onnx infers for the values that two models have in common.

Names of free dimensions hide differences. For example, if x is [1, B, 4], Squeeze (x) without axes removes the batch axis B only if
B is 1. So each free dimension is first replaced by a number. If onnx cannot infer the shape of a value in one of the models, this
value is not compared. A value is not compared either if ``before`` declares another shape for it than onnx infers: in an If whose
branches differ in rank, for example, onnx infers the shape of one branch.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count

import onnx
from onnx.external_data_helper import uses_external_data

from ortscan.base.proto_graphs import all_graphs
from ortscan.running.analysis import analyse, if_readable
from ortscan.running.constraints import learn_sizes
from ortscan.running.graph_index import all_nodes
from ortscan.running.joined_vectors import has_long_vectors
from ortscan.running.specs import input_specs
from rewrites.analysis.shapes.shown_scopes import feedable_inputs, make_names_unique, show_captured_constants
from rewrites.analysis.shapes.unknown_bounds import hide_unknown_bounds
from rewrites.base.errors import is_raised_by
from rewrites.graph.type_names import shape_name

__all__ = ["disagreement"]

_FIRST, _STEP = 11, 12
"""Free dimensions get 11, 23, 35, …: all different, no multiples of each other, and unlike typical sizes of models."""

_Free = list[tuple[str, onnx.TensorShapeProto.Dimension]]


def disagreement(before: onnx.ModelProto, after: onnx.ModelProto) -> str | None:
    """Return in one line the first difference between the types or shapes of a common value, or None.

    The shapes are compared up to three times, with different sizes of the free dimensions:

    1. All free dimensions get different sizes.
    2. If there is a difference, it may be due to sizes that operators of ``before`` do not accept. So dimensions that these
       operators require to be equal get the same size. The difference at these sizes counts instead of the first one.
    3. If there is no difference so far, all free dimensions get the size 1.

    If inference rejects ``before`` at some sizes, nothing is compared at these sizes.
    """
    old, new = _inputs_only(before, after.graph.input), _inputs_only(after)
    free = [_free_dims(old.graph), _free_dims(new.graph)]
    names = list(dict.fromkeys(name for dims in free for name, _ in dims))
    declared = _types(before.graph)
    different = dict(zip(names, count(_FIRST, _STEP), strict=False))
    difference = _difference_at(different, old, new, free, declared)
    if difference is not None and names:
        difference = _difference_at(_fitting(_inputs_only(before, after.graph.input), different), old, new, free, declared)
    if difference is None and names:
        difference = _difference_at(dict.fromkeys(names, 1), old, new, free, declared)
    return difference


def _difference_at(
    sizes: Mapping[str, int],
    old: onnx.ModelProto,
    new: onnx.ModelProto,
    free: Iterable[_Free],
    declared: Mapping[str, onnx.TypeProto],
) -> str | None:
    for name, dim in chain.from_iterable(free):
        dim.dim_value = sizes[name]
    was = _inferred(old, strict=True)
    now = _inferred(new, strict=False) if was is not None else None
    difference = next(_contradictions(was.graph, now.graph, declared), None) if was is not None and now is not None else None
    return None if was is None or difference is None or _has_impossible_expand(was) else difference


def _fitting(model: onnx.ModelProto, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return ``sizes``, adapted to the operators of ``model``.

    Dimensions get equal sizes if the operators require this, and a dimension gets a certain size if the operators require it.
    If the model cannot be read, return ``sizes`` unchanged.
    """
    facts = if_readable(lambda: learn_sizes(analyse(model, input_specs(model.graph))))
    fitting = dict(sizes)
    if facts is None:
        return fitting
    for group in facts.groups(sizes):
        number = facts.likely_size(group[0][0]) or sizes[group[0][0]]
        fitting |= {name: facts.required_size(name) or number for part in group for name in part}
    return fitting


def _contradictions(before: onnx.GraphProto, after: onnx.GraphProto, declared: Mapping[str, onnx.TypeProto]) -> Iterator[str]:
    was = {
        name: kind for name, kind in _types(before).items() if name not in declared or _contradiction(declared[name], kind) is None
    }
    for info in chain(after.output, after.value_info):
        difference = _contradiction(was[info.name], info.type) if info.name in was and info.type.HasField("tensor_type") else None
        if difference is not None:
            yield f"'{info.name}' {difference}"


def _types(graph: onnx.GraphProto) -> dict[str, onnx.TypeProto]:
    return {info.name: info.type for info in chain(graph.output, graph.value_info) if info.type.HasField("tensor_type")}


def _contradiction(was: onnx.TypeProto, now: onnx.TypeProto) -> str | None:
    if was == now:
        return None
    type_was, type_now = was.tensor_type.elem_type, now.tensor_type.elem_type
    if type_was and type_now and type_was != type_now:
        names = [onnx.TensorProto.DataType.Name(elem_type).lower() for elem_type in (type_was, type_now)]
        return f"has the type {names[0]} in the original and {names[1]} in the result"
    old, new = _dims(was.tensor_type), _dims(now.tensor_type)
    if old is None or new is None:
        return None
    if len(old) != len(new) or any(None not in (a, b) and a != b for a, b in zip(old, new, strict=True)):
        return f"has the shape {shape_name(old)} in the original and {shape_name(new)} in the result"
    return None


def _inputs_only(model: onnx.ModelProto, inputs: Iterable[onnx.ValueInfoProto] = ()) -> onnx.ModelProto:
    """Return a copy of the model in which only the inputs have declared shapes.

    The declarations ``inputs`` replace the model's own declarations of these inputs. For the original, ``inputs`` has the
    declarations of the rewritten model. These may have fixed sizes, and both models must be compared at the same sizes.
    """
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
    show_captured_constants(proto.graph, feedable_inputs(proto))
    hide_unknown_bounds(proto)
    make_names_unique(proto)
    return proto


def _free_dims(graph: onnx.GraphProto) -> _Free:
    """Return (name, dimension) for each free dimension of the inputs of ``graph``.

    If a dimension has no name, the name is its position, such as ``x[1]``.
    """
    dims = [(f"{info.name}[{axis}]", dim) for info in graph.input for axis, dim in enumerate(info.type.tensor_type.shape.dim)]
    return [(dim.dim_param or position, dim) for position, dim in dims if not dim.HasField("dim_value")]


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


def _has_impossible_expand(model: onnx.ModelProto) -> bool:
    """Return True if the model has an Expand that would fail.

    onnx does not report such an Expand. If an operand of shape [11, 3] is expanded to [2, 3], onnx infers [11, 3] for the result.
    """
    shapes = dict[str, list[int | None] | None]()
    constants = dict[str, onnx.TensorProto]()
    for graph in all_graphs(model):
        infos = chain(graph.input, graph.output, graph.value_info)
        shapes |= {info.name: _dims(info.type.tensor_type) for info in infos}
        constants |= {tensor.name: tensor for tensor in graph.initializer if not uses_external_data(tensor)}
    for node, _ in all_nodes(model):
        if node.op_type == "Expand" and node.input[1] in constants:
            sizes = onnx.numpy_helper.to_array(constants[node.input[1]]).tolist()
            pairs = zip(reversed(shapes.get(node.input[0]) or []), reversed(sizes), strict=False)
            if any(size is not None and size != target and 1 not in (size, target) for size, target in pairs):
                return True
    return False


def _dims(tensor: onnx.TypeProto.Tensor) -> list[int | None] | None:
    if not tensor.HasField("shape"):
        return None
    return [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
