"""Hides bounds of a Slice from onnx's inference if it would not know them, because it would assume 0.

    shape = Shape(x)  part = Slice(shape, start, {2})    ->    part = Slice(shape, <an unknown input>, {2})

For a Slice of sizes, onnx 1.23 would infer wrong ranks. If the shape of the axes or steps is unknown, it treats them as absent, and
cuts other axes. It knows constants of the Slice's own graph only, and only if no inner graph reads them too; for the inner graph
they stay unknown. For a Slice of opset 10 it keeps the names of dimensions that are cut. Only the copy of the model for onnx
changes.

Works around ONNX-SLICE-UNKNOWN-BOUNDS, ONNX-AXES-WITHOUT-SHAPE and ONNX-SLICE-10-NAMES.
"""

from collections.abc import Iterator

import onnx
import onnx.numpy_helper

__all__ = ["forget_cut_names", "graphs_of", "hide_unknown_bounds", "opset_of"]

_BOUNDS_ARE_INPUTS = 10
_KEEPS_NAMES = 10
_NEED_NOT_BE_LISTED = 4
"""The IR version from which on initializers need not be inputs; before, onnx ignores initializers that are not inputs."""
_UNKNOWN = "bounds onnx does not know"


def hide_unknown_bounds(proto: onnx.ModelProto) -> None:
    """Let each Slice of ``proto`` start at a new, untyped input unless constants of its own graph determine all bounds."""
    if opset_of(proto) < _BOUNDS_ARE_INPUTS:
        return
    hidden = False
    for graph in graphs_of(proto.graph):
        slices = [node for node in graph.node if node.op_type == "Slice" and len(node.input) > 2]
        if slices:
            known = _constants_of(graph)
            bounds = {name for node in slices for name in node.input[1:]} & known.keys()
            shared = bounds & _read_inside(graph) if bounds else set()
            for node in slices:
                if not known.keys() >= {*node.input[1:]} - {""}:
                    node.input[1] = _UNKNOWN
                    hidden = True
                for place, name in enumerate(node.input):
                    if place and name in shared:
                        node.input[place] = f"{_UNKNOWN}: {name}"
            copies = [_renamed(known[name], name) for name in sorted(shared)]
            graph.initializer.extend(copies)
            if graph is proto.graph and proto.ir_version < _NEED_NOT_BE_LISTED:
                graph.input.extend(onnx.helper.make_tensor_value_info(copy.name, copy.data_type, copy.dims) for copy in copies)
    if hidden:
        proto.graph.input.add(name=_UNKNOWN)


def forget_cut_names(proto: onnx.ModelProto, inferred: onnx.ModelProto) -> bool:
    """Declare the ``inferred`` shapes of Slices of opset 10 without the names of cut axes; return True if there are any."""
    if opset_of(proto) != _KEEPS_NAMES:
        return False
    found_any = False
    for graph, found in zip(graphs_of(proto.graph), graphs_of(inferred.graph), strict=True):
        infos = {info.name: info for infos in (found.value_info, found.output) for info in infos}
        tensors = _constants_of(graph)
        for node in graph.node:
            if node.op_type != "Slice" or node.domain not in ("", "ai.onnx") or node.output[0] not in infos:
                continue
            info = infos[node.output[0]]
            dims = info.type.tensor_type.shape.dim
            axes = tensors.get(node.input[3]) if len(node.input) > 3 else None
            places = range(len(dims)) if axes is None else onnx.numpy_helper.to_array(axes).ravel().tolist()
            cut = [dims[place] for place in places if -len(dims) <= place < len(dims) and dims[place].dim_param]
            for dim in cut:
                dim.Clear()
            if cut:
                node.domain = _UNKNOWN
                found_any = True
                graph.value_info.append(info)
    if found_any:
        proto.opset_import.add(domain=_UNKNOWN, version=1)
    return found_any


def _constants_of(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Return the constants of a graph by their names; only integers have their elements."""
    found = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            kinds = {attribute.name: attribute for attribute in node.attribute}
            numbers = kinds["value_ints"].ints if "value_ints" in kinds else [kinds["value_int"].i] if "value_int" in kinds else []
            tensor = onnx.TensorProto(
                data_type=onnx.TensorProto.INT64, dims=[len(numbers)] * ("value_int" not in kinds), int64_data=numbers
            )
            found[node.output[0]] = kinds["value"].t if "value" in kinds else tensor
    return found


def _read_inside(graph: onnx.GraphProto) -> set[str]:
    """Return the names that inner graphs of ``graph`` read."""
    return {name for inner in graphs_of(graph) if inner is not graph for node in inner.node for name in node.input}


def _renamed(tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.name = f"{_UNKNOWN}: {name}"
    return copy


def opset_of(proto: onnx.ModelProto | onnx.FunctionProto) -> int:
    """Return the opset of onnx's own operators; 0 if the model or function has none."""
    return max((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), default=0)


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield ``graph`` and all graphs nested in it."""
    pending = [graph]
    while pending:
        one = pending.pop()
        yield one
        for node in one.node:
            for attribute in node.attribute:
                pending.extend([attribute.g] if attribute.HasField("g") else attribute.graphs)
