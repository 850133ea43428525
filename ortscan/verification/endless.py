"""Loops that nothing but their data stops: on made-up inputs they may run for ever."""

from collections.abc import Iterator

import onnx

from ortscan.verification.subgraphs import all_graphs, all_nodes

__all__ = ["may_run_for_ever"]

_MANY_TRIPS = 1_000_000


def may_run_for_ever(proto: onnx.ModelProto) -> bool:
    """Whether a Loop has no trip count, or a constant one so large that it is none."""
    loops = [node for node, _ in all_nodes(proto) if node.op_type == "Loop"]
    if not loops:
        return False
    limits = dict(_scalars(proto))
    return any(not node.input[0] or limits.get(node.input[0], 0) > _MANY_TRIPS for node in loops)


def _scalars(proto: onnx.ModelProto) -> Iterator[tuple[str, int]]:
    tensors = [(tensor.name, tensor) for graph in all_graphs(proto) for tensor in graph.initializer]
    for node, _ in all_nodes(proto):
        if node.op_type == "Constant" and node.attribute:
            value = node.attribute[0]
            if value.name == "value_int":
                yield node.output[0], value.i
            if value.name == "value":
                tensors.append((node.output[0], value.t))
    for name, tensor in tensors:
        if tensor.data_type == onnx.TensorProto.INT64 and list(tensor.dims) in ([], [1]) and not tensor.external_data:
            yield name, int(onnx.numpy_helper.to_array(tensor).reshape(-1)[0])
