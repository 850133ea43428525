"""Hides bounds of a Slice from onnx's inference if onnx would assume wrong bounds.

    shape = Shape(x)  part = Slice(shape, start, {2})    ->    part = Slice(shape, <an unknown input>, {2})

onnx 1.23 makes three errors:

- If a Slice reads a vector of sizes and a bound is unknown, onnx assumes that the bound is 0 and infers wrong ranks. onnx sees a
  bound only if it is a constant of the graph that contains the Slice, and no nested graph reads it too.
- If the input ``axes`` or ``steps`` has an unknown shape, onnx treats this input as absent and cuts along the wrong axes.
- In opset 10, a dimension keeps its name although the Slice cuts it.

Only the copy of the model for onnx changes.

Works around ONNX-SLICE-UNKNOWN-BOUNDS, ONNX-AXES-WITHOUT-SHAPE and ONNX-SLICE-10-NAMES.
"""

from collections.abc import Iterator

import onnx
import onnx.numpy_helper

__all__ = ["constants_of", "forget_cut_names", "graphs_of", "hide_unknown_bounds", "inner_graphs_of", "opset_of"]

_BOUNDS_ARE_INPUTS = 10
_KEEPS_NAMES = 10
_NEED_NOT_BE_LISTED = 4
"""The first IR version in which initializers need not be inputs. Before, onnx sees only initializers that are inputs."""
_UNKNOWN = "bounds onnx does not know"


def hide_unknown_bounds(proto: onnx.ModelProto) -> None:
    """Replace the starts of each Slice by a new untyped input, unless onnx sees all bounds of the Slice.

    A bound that a nested graph reads too is replaced by a copy for the Slice. In a function, a Compress hides the starts.
    """
    if opset_of(proto) < _BOUNDS_ARE_INPUTS:
        return
    hidden = False
    for graph in graphs_of(proto.graph):
        slices = [node for node in graph.node if node.op_type == "Slice" and len(node.input) > 2]
        if slices:
            known = constants_of(graph)
            bounds = {name for node in slices for name in node.input[1:]} & known.keys()
            shared = bounds & _read_inside(graph) if bounds else set()
            for node in slices:
                if not known.keys() >= {*node.input[1:]} - {""}:
                    node.input[1] = _UNKNOWN
                    hidden = True
                for index, name in enumerate(node.input):
                    if index and name in shared:
                        node.input[index] = f"{_UNKNOWN}: {name}"
            copies = [_renamed(known[name], name) for name in sorted(shared)]
            graph.initializer.extend(copies)
            if graph is proto.graph and proto.ir_version < _NEED_NOT_BE_LISTED:
                graph.input.extend(onnx.helper.make_tensor_value_info(copy.name, copy.data_type, copy.dims) for copy in copies)
    if hidden:
        proto.graph.input.add(name=_UNKNOWN)
    for function in proto.functions:
        if opset_of(function) >= _BOUNDS_ARE_INPUTS:
            for body in (function, *(graph for inner in inner_graphs_of(function) for graph in graphs_of(inner))):
                _compress_unknown_starts(body)


def _compress_unknown_starts(body: onnx.GraphProto | onnx.FunctionProto) -> None:
    """Compute the unknown starts of Slices in a function by a Compress.

    onnx does not infer the size of the result of a Compress. A new input would hide the starts as well, but a function cannot get a
    new input.
    """
    known = constants_of(body)
    nodes: list[onnx.NodeProto] = []
    for node in body.node:
        if node.op_type == "Slice" and len(node.input) > 2 and not known.keys() >= {*node.input[1:]} - {""}:
            equal, hidden = f"{_UNKNOWN}: {node.output[0]}: equal", f"{_UNKNOWN}: {node.output[0]}"
            nodes.append(onnx.helper.make_node("Equal", [node.input[1]] * 2, [equal]))
            nodes.append(onnx.helper.make_node("Compress", [node.input[1], equal], [hidden], axis=0))
            node.input[1] = hidden
        nodes.append(node)
    if len(nodes) > len(body.node):
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del body.node[:]
        body.node.extend(copies)


def forget_cut_names(proto: onnx.ModelProto, inferred: onnx.ModelProto) -> bool:
    """Declare the results of Slices of opset 10, without the names of the dimensions that the Slices cut.

    The other sizes of a declaration come from ``inferred``, the same model with inferred types. Each declared Slice becomes an
    unknown operator in ``proto``, so that onnx uses the declaration.

    Returns:
        True if there is such a Slice.
    """
    if opset_of(proto) != _KEEPS_NAMES:
        return False
    any_cut = False
    for graph, known in zip(graphs_of(proto.graph), graphs_of(inferred.graph), strict=True):
        infos = {info.name: info for infos in (known.value_info, known.output) for info in infos}
        tensors = constants_of(graph)
        for node in graph.node:
            if node.op_type != "Slice" or node.domain not in ("", "ai.onnx") or node.output[0] not in infos:
                continue
            info = infos[node.output[0]]
            dims = info.type.tensor_type.shape.dim
            axes = tensors.get(node.input[3]) if len(node.input) > 3 else None
            positions = range(len(dims)) if axes is None else onnx.numpy_helper.to_array(axes).ravel().tolist()
            cut = [dims[axis] for axis in positions if -len(dims) <= axis < len(dims) and dims[axis].dim_param]
            for dim in cut:
                dim.Clear()
            if cut:
                node.domain = _UNKNOWN
                any_cut = True
                graph.value_info.append(info)
    if any_cut:
        proto.opset_import.add(domain=_UNKNOWN, version=1)
    return any_cut


def constants_of(graph: onnx.GraphProto | onnx.FunctionProto) -> dict[str, onnx.TensorProto]:
    """Return the constant tensors of a graph or function, by name."""
    tensors = {tensor.name: tensor for tensor in graph.initializer} if isinstance(graph, onnx.GraphProto) else {}
    for node in graph.node:
        tensor = _tensor_of(node.attribute[0]) if node.op_type == "Constant" and len(node.attribute) == 1 else None
        if tensor is not None:
            tensors[node.output[0]] = tensor
    return tensors


def _tensor_of(value: onnx.AttributeProto) -> onnx.TensorProto | None:
    make = onnx.helper.make_tensor
    match value.name:
        case "value":
            return value.t
        case "value_int":
            return make("", onnx.TensorProto.INT64, [], [value.i])
        case "value_ints":
            return make("", onnx.TensorProto.INT64, [len(value.ints)], value.ints)
        case "value_float":
            return make("", onnx.TensorProto.FLOAT, [], [value.f])
        case "value_floats":
            return make("", onnx.TensorProto.FLOAT, [len(value.floats)], value.floats)
    return None


def _read_inside(graph: onnx.GraphProto) -> set[str]:
    """Return the names of all values that graphs nested in ``graph`` read."""
    return {name for inner in graphs_of(graph) if inner is not graph for node in inner.node for name in node.input}


def _renamed(tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.name = f"{_UNKNOWN}: {name}"
    return copy


def opset_of(proto: onnx.ModelProto | onnx.FunctionProto) -> int:
    """Return the version of the standard operator set, or 0 if the model does not import it."""
    return max((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), default=0)


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield ``graph`` and all graphs nested in it."""
    yield graph
    for inner in inner_graphs_of(graph):
        yield from graphs_of(inner)


def inner_graphs_of(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that are attributes of the nodes of ``graph``, but not the graphs nested in them."""
    for node in graph.node:
        for attribute in node.attribute:
            yield from [attribute.g] if attribute.HasField("g") else attribute.graphs
