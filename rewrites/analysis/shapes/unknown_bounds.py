"""Bounds of a Slice that onnx's inference does not know are kept from it, since it takes them for 0.

    shape = Shape(x)  part = Slice(shape, start, {2})    ->    part = Slice(shape, <something of which nothing is known>, {2})

Where such a Slice is one of sizes, onnx 1.23 would find ranks that contradict all that is right. Axes and steps of which it knows
no shape it takes for absent, and cuts along others. It knows the constants of the graph in which the Slice stands alone, none of
those around it, and none that an inner graph reads too: to that it was unknown, and so it stays. A Slice of opset 10 it lets keep
the names of dimensions that it cuts, whatever the bounds. Nothing is changed but the model that onnx is shown.

Works round ONNX-SLICE-UNKNOWN-BOUNDS, ONNX-AXES-WITHOUT-SHAPE and ONNX-SLICE-10-NAMES.
"""

from collections.abc import Iterator

import onnx
import onnx.numpy_helper

__all__ = ["forget_cut_names", "graphs_of", "hide_unknown_bounds", "opset_of"]

_BOUNDS_ARE_INPUTS = 10
_KEEPS_NAMES = 10
_NEED_NOT_BE_LISTED = 4
"""The IR version from which on initializers need not be inputs; before, onnx does not know those that are none."""
_UNKNOWN = "bounds onnx does not know"


def hide_unknown_bounds(proto: onnx.ModelProto) -> None:
    """Let each Slice of ``proto`` that is not told by constants of its own graph alone begin at a new input, of no type."""
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
    """Say of each Slice of opset 10 what was ``inferred`` but for the names where it cuts; return whether there are any."""
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
    """Return the constants of a graph by their names; those that are no tensors of integers are without their numbers."""
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
    """Return the names that are read in the graphs inside of ``graph``."""
    return {name for inner in graphs_of(graph) if inner is not graph for node in inner.node for name in node.input}


def _renamed(tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.name = f"{_UNKNOWN}: {name}"
    return copy


def opset_of(proto: onnx.ModelProto | onnx.FunctionProto) -> int:
    """Return the opset of onnx's own operators; 0 where the model or function names none."""
    return max((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), default=0)


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield ``graph`` and all graphs inside of it."""
    pending = [graph]
    while pending:
        one = pending.pop()
        yield one
        for node in one.node:
            for attribute in node.attribute:
                pending.extend([attribute.g] if attribute.HasField("g") else attribute.graphs)
